/** Makes an account, with limits where they are given, and goes to its page. */
import { TextInput } from '@mantine/core';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { AccountEntry } from '../../../src/operations/accounts/schemas.ts';
import { useChange } from '../api/change';
import { path, post } from '../api/client';
import { FormDialog } from '../parts/form-dialog';
import { LimitFields } from './limit-fields';
import { changed, NO_LIMITS } from './limits';

export function CreateAccountDialog({ opened, onClose }: { readonly opened: boolean; readonly onClose: () => void }) {
  const [, go] = useLocation();
  const [name, setName] = useState('');
  const [limits, setLimits] = useState(NO_LIMITS);
  const create = useChange(
    () => post<AccountEntry>('/accounts', { name: name.trim(), ...changed(NO_LIMITS, limits) }),
    ['accounts'],
    (made) => `Made account ${made.name}. It needs a key before it can send.`,
  );
  return (
    <FormDialog
      opened={opened}
      title="Create an account"
      action="Create account"
      busy={create.isPending}
      disabled={name.trim() === ''}
      error={create.error}
      onSubmit={() => create.mutate(undefined, { onSuccess: (made) => go(`${path`/accounts/${made.name}`}?tab=keys`) })}
      onClose={onClose}
    >
      <TextInput
        label="Name"
        description="Up to 64 characters; it cannot be changed later"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        autoComplete="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <LimitFields limits={limits} thresholds={false} onChange={setLimits} />
    </FormDialog>
  );
}
