/** Removes an address from a suppression list, after a confirmation. */
import { Button, Text } from '@mantine/core';
import { useState } from 'react';
import { path, remove } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { formatListOwner } from './list-owner';

export function RemoveSuppressionButton({ list, address }: { readonly list: string; readonly address: string }) {
  const [isConfirmOpen, setIsConfirmOpen] = useState(false);
  const removal = useApiMutation(
    () => remove(path`/accounts/${list}/suppressions/${address}`),
    ['suppressions'],
    () => `Removed ${address} from the suppression list of ${formatListOwner(list)}.`,
  );
  return (
    <>
      <Button
        size="compact-sm"
        variant="default"
        aria-label={`Remove ${address} from the suppression list of ${formatListOwner(list)}`}
        onClick={() => setIsConfirmOpen(true)}
      >
        Remove
      </Button>
      <ConfirmDialog
        opened={isConfirmOpen}
        title="Remove the address?"
        action="Remove address"
        busy={removal.isPending}
        error={removal.error}
        onConfirm={() => removal.mutate(undefined, { onSuccess: () => setIsConfirmOpen(false) })}
        onClose={() => setIsConfirmOpen(false)}
      >
        <Text className="wrap">
          Messages of {formatListOwner(list)} to {address} are sent again. Another hard bounce or complaint adds the
          address again and counts against the reputation of the account.
        </Text>
      </ConfirmDialog>
    </>
  );
}
