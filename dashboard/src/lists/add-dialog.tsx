/** Puts one address on a list. */
import { NativeSelect, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { AddedSuppression } from '../../../src/operations/suppressions/schemas.ts';
import { useChange } from '../api/change';
import { path, post } from '../api/client';
import { FormDialog } from '../parts/form-dialog';
import { listName } from './list-name';

const REASONS = [
  { value: 'manual', label: 'manual: an operator wants it so' },
  { value: 'bounce', label: 'bounce: refused for good' },
  { value: 'complaint', label: 'complaint: reported as spam' },
];

export function AddDialog({ list, onClose }: { readonly list: string; readonly onClose: () => void }) {
  const [address, setAddress] = useState('');
  const [reason, setReason] = useState('manual');
  const add = useChange(
    () =>
      post<AddedSuppression>(path`/accounts/${list}/suppressions`, {
        address: address.trim(),
        reason,
      }),
    ['suppressions'],
    (made) =>
      made.added
        ? `${made.address} gets no more mail from ${listName(list)}.`
        : `${made.address} was on the list already.`,
  );
  return (
    <FormDialog
      opened
      title={`Add to the list of ${listName(list)}`}
      action="Add address"
      busy={add.isPending}
      disabled={address.trim() === ''}
      error={add.error}
      onSubmit={() => add.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <TextInput
        label="Email address"
        value={address}
        onChange={(event) => setAddress(event.currentTarget.value)}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <NativeSelect
        label="Reason"
        data={REASONS}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
    </FormDialog>
  );
}
