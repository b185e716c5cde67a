/** Locks an account with a reason, or unlocks it. A dialog states the consequences and asks for confirmation. */
import { Button, List, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { AccountDetails } from '../../../src/operations/accounts.ts';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { formatCount } from '../parts/number';

export function LockButton({ account }: { readonly account: AccountDetails }) {
  const [dialogAccount, setDialogAccount] = useState<AccountDetails | null>(null);
  const isLocked = account.state === 'locked';
  return (
    <>
      <Button variant={isLocked ? 'filled' : 'default'} onClick={() => setDialogAccount(account)}>
        {isLocked ? 'Unlock' : 'Lock'}
      </Button>
      {dialogAccount === null ? null : dialogAccount.state === 'locked' ? (
        <UnlockDialog account={dialogAccount} onClose={() => setDialogAccount(null)} />
      ) : (
        <LockDialog account={dialogAccount} onClose={() => setDialogAccount(null)} />
      )}
    </>
  );
}

interface DialogProps {
  /** The account as it was when the dialog opened. */
  readonly account: AccountDetails;
  readonly onClose: () => void;
}

function LockDialog({ account: { name, version }, onClose }: DialogProps) {
  const [reason, setReason] = useState('');
  const lock = useApiMutation(
    () => post(path`/accounts/${name}/lock`, { reason: reason.trim(), expected: version }),
    ['accounts', 'overview'],
    () => `Locked ${name}.`,
  );
  return (
    <ConfirmDialog
      opened
      title={`Lock ${name}?`}
      action="Lock account"
      busy={lock.isPending}
      disabled={reason.trim() === ''}
      error={lock.error}
      onConfirm={() => lock.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Stack>
        <Text>
          Within one second every node refuses the keys of the account with 401. Queued messages of the account wait
          until it is unlocked. Delivery attempts in progress continue.
        </Text>
        <TextInput
          label="Reason"
          description="Shown to operators, not to clients"
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
          maxLength={500}
          required
          data-autofocus
        />
      </Stack>
    </ConfirmDialog>
  );
}

function UnlockDialog({ account: { name, version, reason, reputation }, onClose }: DialogProps) {
  const unlock = useApiMutation(
    () => post(path`/accounts/${name}/unlock`, { expected: version }),
    ['accounts', 'overview'],
    () => `Unlocked ${name}.`,
  );
  const { bounces, complaints, emails } = reputation;
  return (
    <ConfirmDialog
      opened
      title={`Unlock ${name}?`}
      action="Unlock account"
      busy={unlock.isPending}
      error={unlock.error}
      onConfirm={() => unlock.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Stack>
        <Text className="wrap">Reason of the lock: {reason}</Text>
        <List>
          <List.Item>Within one second the keys work again and queued messages are sent.</List.Item>
          <List.Item>
            The counts of the last 7 days are reset: {formatCount(emails, 'message')},{' '}
            {formatCount(bounces, 'hard bounce')}, {formatCount(complaints, 'complaint')}.
          </List.Item>
          <List.Item>The suppression list does not change.</List.Item>
        </List>
      </Stack>
    </ConfirmDialog>
  );
}
