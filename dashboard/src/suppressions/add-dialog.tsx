/** Adds one address to a suppression list. */
import { NativeSelect, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { AddedSuppression } from '../../../src/operations/suppressions.ts';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { FormDialog } from '../parts/form-dialog';
import { formatListOwner } from './list-owner';

const REASON_OPTIONS = [
  { value: 'manual', label: 'manual: added by an operator' },
  { value: 'bounce', label: 'bounce: hard bounce' },
  { value: 'complaint', label: 'complaint: the recipient reported spam' },
];

export function AddSuppressionDialog({ list, onClose }: { readonly list: string; readonly onClose: () => void }) {
  const [address, setAddress] = useState('');
  const [reason, setReason] = useState('manual');
  const [expires, setExpires] = useState('');
  const add = useApiMutation(
    () =>
      post<AddedSuppression>(path`/accounts/${list}/suppressions`, {
        address: address.trim(),
        reason,
        ...(expires.trim() === '' ? {} : { expires: expires.trim() }),
      }),
    ['suppressions'],
    (addedSuppression) =>
      addedSuppression.added
        ? `${addedSuppression.address} is on the suppression list of ${formatListOwner(list)}.`
        : `${addedSuppression.address} was already on the suppression list of ${formatListOwner(list)}.`,
  );
  return (
    <FormDialog
      opened
      title={`Add an address to the suppression list of ${formatListOwner(list)}`}
      action="Add address"
      busy={add.isPending}
      disabled={address.trim() === ''}
      error={add.error}
      onSubmit={() => add.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <TextInput
        label="Email address"
        description="Or a domain such as @example.com, or its subdomains: @*.example.com"
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
        data={REASON_OPTIONS}
        value={reason}
        onChange={(event) => setReason(event.currentTarget.value)}
      />
      <TextInput
        label="Expires"
        description="A date (UTC) or a duration such as 7d; empty: never"
        value={expires}
        onChange={(event) => setExpires(event.currentTarget.value)}
        autoComplete="off"
        spellCheck={false}
      />
    </FormDialog>
  );
}
