/** Takes an address off a list, when asked twice. */
import { Button, Text } from '@mantine/core';
import { useState } from 'react';
import { useChange } from '../api/change';
import { path, remove } from '../api/client';
import { Ask } from '../parts/ask';
import { listName } from './list-name';

export function RemoveButton({ list, address }: { readonly list: string; readonly address: string }) {
  const [asking, setAsking] = useState(false);
  const drop = useChange(
    () => remove(path`/accounts/${list}/suppressions/${address}`),
    ['suppressions'],
    () => `${address} is off the list of ${listName(list)}.`,
  );
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        aria-label={`Remove ${address} from the list of ${listName(list)}`}
        onClick={() => setAsking(true)}
      >
        Remove
      </Button>
      <Ask
        opened={asking}
        title="Take it off the list?"
        action="Remove address"
        busy={drop.isPending}
        error={drop.error}
        onConfirm={() => drop.mutate(undefined, { onSuccess: () => setAsking(false) })}
        onClose={() => setAsking(false)}
      >
        <Text className="wrap">
          Mail to {address} is sent again by {listName(list)}. If it bounces or complains once more it comes back here,
          and the reputation of the account suffers.
        </Text>
      </Ask>
    </>
  );
}
