/** Changes an account's limits. What it was when the dialog opened goes along: where somebody else has changed it meanwhile, the service refuses. */
import { Button, Group, Text } from '@mantine/core';
import { useState } from 'react';
import type { AccountDetails, AccountEntry } from '../../../src/operations/accounts/schemas.ts';
import { useChange } from '../api/change';
import { ApiError, get, patch, path } from '../api/client';
import { FormDialog } from '../parts/form-dialog';
import { LimitFields } from './limit-fields';
import { changed, limitsOf } from './limits';

export function LimitsDialog({ account, onClose }: { readonly account: AccountDetails; readonly onClose: () => void }) {
  const [seen, setSeen] = useState(account);
  const [limits, setLimits] = useState(() => limitsOf(account));
  const change = changed(limitsOf(seen), limits);
  const save = useChange(
    () => patch<AccountEntry>(path`/accounts/${seen.name}`, { ...change, expected: seen.version }),
    ['accounts'],
    () => `Changed the limits of ${seen.name}.`,
  );
  const stale = save.error instanceof ApiError && save.error.status === 409;
  const begin = useChange(() => get<AccountDetails>(path`/accounts/${seen.name}`), ['accounts']);
  return (
    <FormDialog
      opened
      title={`Limits of ${account.name}`}
      action="Change limits"
      busy={save.isPending}
      disabled={Object.keys(change).length === 0 || stale}
      error={begin.error ?? save.error}
      onSubmit={() => save.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <LimitFields limits={limits} thresholds onChange={setLimits} />
      {change.volume === undefined ? null : (
        <Text size="sm">A new volume begins to count at zero: the {seen.volumeUsed} used so far are forgotten.</Text>
      )}
      {stale ? (
        <Group>
          <Button
            variant="default"
            loading={begin.isPending}
            onClick={() =>
              begin.mutate(undefined, {
                onSuccess: (now) => {
                  setSeen(now);
                  setLimits({ ...limitsOf(now), ...change });
                  save.reset();
                },
              })
            }
          >
            Change it as it is now
          </Button>
        </Group>
      ) : null}
    </FormDialog>
  );
}
