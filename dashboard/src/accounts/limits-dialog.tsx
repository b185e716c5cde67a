/** Changes the limits of an account. The request names the version that the dialog shows; if the account has changed since, the service refuses. */
import { Button, Group, Text } from '@mantine/core';
import { useState } from 'react';
import type { AccountDetails, AccountEntry } from '../../../src/operations/accounts/schemas.ts';
import { ApiError, get, patch, path } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { FormDialog } from '../parts/form-dialog';
import { LimitFields } from './limit-fields';
import { changedLimits, limitsOf } from './limits';

export function LimitsDialog({ account, onClose }: { readonly account: AccountDetails; readonly onClose: () => void }) {
  const [seen, setSeen] = useState(account);
  const [limits, setLimits] = useState(() => limitsOf(account));
  const change = changedLimits(limitsOf(seen), limits);
  const save = useApiMutation(
    () => patch<AccountEntry>(path`/accounts/${seen.name}`, { ...change, expected: seen.version }),
    ['accounts'],
    () => `Changed the limits of ${seen.name}.`,
  );
  const conflict = save.error instanceof ApiError && save.error.status === 409;
  const reload = useApiMutation(() => get<AccountDetails>(path`/accounts/${seen.name}`), ['accounts']);
  return (
    <FormDialog
      opened
      title={`Limits of ${account.name}`}
      action="Change limits"
      busy={save.isPending}
      disabled={Object.keys(change).length === 0 || conflict}
      error={reload.error ?? save.error}
      onSubmit={() => save.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <LimitFields limits={limits} thresholds onChange={setLimits} />
      {change.volume === undefined ? null : (
        <Text size="sm">
          The count of a new volume starts at zero; the {seen.volumeUsed} emails used so far are no longer counted.
        </Text>
      )}
      {conflict ? (
        <Group>
          <Button
            variant="default"
            loading={reload.isPending}
            onClick={() =>
              reload.mutate(undefined, {
                onSuccess: (now) => {
                  setSeen(now);
                  setLimits({ ...limitsOf(now), ...change });
                  save.reset();
                },
              })
            }
          >
            Load the current limits
          </Button>
        </Group>
      ) : null}
    </FormDialog>
  );
}
