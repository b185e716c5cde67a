/**
 * Changes the limits of an account. The request contains the version of the account that the dialog shows. The service
 * refuses the request if the account has changed since that version.
 */
import { Button, Group, Text } from '@mantine/core';
import { useState } from 'react';
import type { AccountDetails, AccountEntry } from '../../../src/operations/accounts.ts';
import { ApiError, get, patch, path } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { FormDialog } from '../parts/form-dialog';
import { LimitFields } from './limit-fields';
import { findChangedLimits, toLimitTexts } from './limits';

export function LimitsDialog({ account, onClose }: { readonly account: AccountDetails; readonly onClose: () => void }) {
  const [shownAccount, setShownAccount] = useState(account);
  const [limits, setLimits] = useState(() => toLimitTexts(account));
  const changedLimits = findChangedLimits(toLimitTexts(shownAccount), limits);
  const save = useApiMutation(
    () =>
      patch<AccountEntry>(path`/accounts/${shownAccount.name}`, { ...changedLimits, expected: shownAccount.version }),
    ['accounts'],
    () => `Changed the limits of ${shownAccount.name}.`,
  );
  const hasConflict = save.error instanceof ApiError && save.error.status === 409;
  const reload = useApiMutation(() => get<AccountDetails>(path`/accounts/${shownAccount.name}`), ['accounts']);
  return (
    <FormDialog
      opened
      title={`Limits of ${account.name}`}
      action="Change limits"
      busy={save.isPending}
      disabled={Object.keys(changedLimits).length === 0 || hasConflict}
      error={reload.error ?? save.error}
      onSubmit={() => save.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <LimitFields limits={limits} hasThresholds onChange={setLimits} />
      {changedLimits.volume === undefined ? null : (
        <Text size="sm">
          The count of a new volume starts at zero; the {shownAccount.volumeUsed} messages used so far are no longer
          counted.
        </Text>
      )}
      {hasConflict ? (
        <Group>
          <Button
            variant="default"
            loading={reload.isPending}
            onClick={() =>
              reload.mutate(undefined, {
                onSuccess: (currentAccount) => {
                  setShownAccount(currentAccount);
                  setLimits({ ...toLimitTexts(currentAccount), ...changedLimits });
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
