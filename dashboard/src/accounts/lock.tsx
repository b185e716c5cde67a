/** Locks an account with a reason, or unlocks it; both ask, and say what follows. */
import { Button, List, Stack, Text, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { AccountDetails } from '../../../src/operations/accounts/schemas.ts';
import { useChange } from '../api/change';
import { path, post } from '../api/client';
import { Ask } from '../parts/ask';
import { counted } from '../parts/number';

export function LockButton({ account }: { readonly account: AccountDetails }) {
  const [seen, setSeen] = useState<AccountDetails | null>(null);
  const locked = account.state === 'locked';
  return (
    <>
      <Button variant={locked ? 'filled' : 'default'} onClick={() => setSeen(account)}>
        {locked ? 'Unlock' : 'Lock'}
      </Button>
      {seen === null ? null : seen.state === 'locked' ? (
        <UnlockDialog account={seen} onClose={() => setSeen(null)} />
      ) : (
        <LockDialog account={seen} onClose={() => setSeen(null)} />
      )}
    </>
  );
}

interface DialogProps {
  /** As it was when the dialog opened. */
  readonly account: AccountDetails;
  readonly onClose: () => void;
}

function LockDialog({ account: { name, version }, onClose }: DialogProps) {
  const [reason, setReason] = useState('');
  const lock = useChange(
    () => post(path`/accounts/${name}/lock`, { reason: reason.trim(), expected: version }),
    ['accounts', 'overview'],
    () => `Locked ${name}.`,
  );
  return (
    <Ask
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
          Its keys are refused with 401 on every node within a second, and its queued mail is held back until it is
          unlocked. Mail that is being handed over right now is not called back.
        </Text>
        <TextInput
          label="Reason"
          description="For the record; operators see it, clients do not"
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
          maxLength={500}
          required
          data-autofocus
        />
      </Stack>
    </Ask>
  );
}

function UnlockDialog({ account: { name, version, reason, reputation }, onClose }: DialogProps) {
  const unlock = useChange(
    () => post(path`/accounts/${name}/unlock`, { expected: version }),
    ['accounts', 'overview'],
    () => `Unlocked ${name}.`,
  );
  const { bounces, complaints, emails } = reputation;
  return (
    <Ask
      opened
      title={`Unlock ${name}?`}
      action="Unlock account"
      busy={unlock.isPending}
      error={unlock.error}
      onConfirm={() => unlock.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <Stack>
        <Text className="wrap">It was locked because: {reason}</Text>
        <List>
          <List.Item>Its keys work again within a second, and its queued mail is sent.</List.Item>
          <List.Item>
            Its 7 days are forgiven: {counted(bounces, 'hard bounce')} and {counted(complaints, 'complaint')} of{' '}
            {counted(emails, 'email')} are no longer counted.
          </List.Item>
          <List.Item>Its suppression list stays as it is.</List.Item>
        </List>
      </Stack>
    </Ask>
  );
}
