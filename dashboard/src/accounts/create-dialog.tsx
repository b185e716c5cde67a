/** Creates an account with optional limits, and opens its page. */
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { AccountEntry } from '../../../src/operations/accounts.ts';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { FormDialog } from '../parts/form-dialog';
import { LimitFields } from './limit-fields';
import { findChangedLimits, NO_LIMITS } from './limits';

export function CreateAccountDialog({ opened, onClose }: { readonly opened: boolean; readonly onClose: () => void }) {
  const [, navigate] = useLocation();
  const [name, setName] = useState('');
  const [limits, setLimits] = useState(NO_LIMITS);
  const create = useApiMutation(
    () => post<AccountEntry>('/accounts', { name: name.trim(), ...findChangedLimits(NO_LIMITS, limits) }),
    ['accounts'],
    (createdAccount) => `Created account ${createdAccount.name}. Create a key to send with this account.`,
  );
  return (
    <FormDialog
      opened={opened}
      title="Create an account"
      action="Create account"
      busy={create.isPending}
      disabled={name.trim() === ''}
      error={create.error}
      onSubmit={() =>
        create.mutate(undefined, {
          onSuccess: (createdAccount) => navigate(`${path`/accounts/${createdAccount.name}`}?tab=keys`),
        })
      }
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="Up to 64 characters. You cannot change it later."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        autoComplete="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <LimitFields limits={limits} hasThresholds={false} onChange={setLimits} />
    </FormDialog>
  );
}
