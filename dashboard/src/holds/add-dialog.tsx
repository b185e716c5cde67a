/** Adds a hold. Without a filter it stops every message, which the dialog says before the hold is added. */
import { Select, TextInput } from '@mantine/core';
import { useState } from 'react';
import { getMailboxProviderName } from '../../../src/model/mailbox-provider.ts';
import type { HoldEntry } from '../../../src/operations/holds.ts';
import { AccountSelect } from '../accounts/account-select';
import { post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { SEARCHABLE_PROVIDERS } from '../messages/filters';
import { Callout } from '../parts/callout';
import { findFieldError } from '../parts/field-error';
import { FormDialog } from '../parts/form-dialog';

const PROVIDERS = SEARCHABLE_PROVIDERS.map((code) => ({ value: code, label: getMailboxProviderName(code) }));
const FIELDS = [
  { name: 'from', label: 'Sender', placeholder: '@example.com', required: false },
  { name: 'to', label: 'Recipient', placeholder: 'name@example.com or @*.example.com', required: false },
  { name: 'for', label: 'Ends after', placeholder: '2h; empty: at its release', required: false },
  { name: 'reason', label: 'Reason', placeholder: '', required: true },
] as const;
const NO_TEXTS = { from: '', to: '', for: '', reason: '' };

export function AddHoldDialog({ onClose }: { readonly onClose: () => void }) {
  const [account, setAccount] = useState<string | null>(null);
  const [mailboxProvider, setMailboxProvider] = useState<string | null>(null);
  const [texts, setTexts] = useState<typeof NO_TEXTS>(NO_TEXTS);
  const input = Object.entries({ ...texts, account: account ?? '', mailboxProvider: mailboxProvider ?? '' })
    .map(([name, text]) => [name, text.trim()] as const)
    .filter(([, text]) => text !== '');
  const add = useApiMutation(
    () => post<HoldEntry>('/holds', Object.fromEntries(input)),
    ['holds', 'overview', 'messages'],
    ({ id }) => `Hold ${id} is in force on every node within a second.`,
  );
  const hasFilter = input.some(([name]) => name !== 'for' && name !== 'reason');
  const errors = FIELDS.map(({ name }) => findFieldError(add.error, name));
  return (
    <FormDialog
      opened
      title="Hold messages"
      action="Add hold"
      busy={add.isPending}
      disabled={texts.reason.trim() === ''}
      error={add.error}
      hasFieldError={errors.some((error) => error !== null)}
      onSubmit={() => add.mutate(undefined, { onSuccess: onClose })}
      onClose={onClose}
    >
      <AccountSelect label="Account" value={account} onChange={setAccount} />
      <Select
        label="Mailbox provider"
        data={PROVIDERS}
        value={mailboxProvider}
        onChange={setMailboxProvider}
        searchable
        clearable
      />
      {FIELDS.map(({ name, label, placeholder, required }, index) => (
        <TextInput
          key={name}
          label={label}
          placeholder={placeholder}
          value={texts[name]}
          onChange={(event) => setTexts({ ...texts, [name]: event.currentTarget.value })}
          error={errors[index]}
          required={required}
          autoComplete="off"
          spellCheck={false}
        />
      ))}
      {hasFilter ? null : (
        <Callout tone="warning" title="Without a filter">
          The hold stops every message of every account.
        </Callout>
      )}
    </FormDialog>
  );
}
