/** Adds a domain and opens its page, which lists the records to publish. */
import { Checkbox, TextInput } from '@mantine/core';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { DomainDetails } from '../../../src/operations/domain-details.ts';
import { AccountSelect } from '../accounts/account-select';
import { useAccounts } from '../accounts/queries';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { FormDialog } from '../parts/form-dialog';

interface AddDomainDialogProps {
  /** The account of the domain; null if the operator chooses it. */
  readonly account: string | null;
  readonly transport?: string;
  readonly onClose: () => void;
}

export function AddDomainDialog({ account, transport, onClose }: AddDomainDialogProps) {
  const [, navigate] = useLocation();
  const accounts = useAccounts().data ?? [];
  const [chosenAccount, setChosenAccount] = useState(account);
  const owner = chosenAccount ?? (accounts.length === 1 ? (accounts[0]?.name ?? null) : null);
  const [domain, setDomain] = useState('');
  const [subdomains, setSubdomains] = useState(false);
  const [easyDkim, setEasyDkim] = useState(false);
  const add = useApiMutation(
    () =>
      post<DomainDetails>(path`/accounts/${owner ?? ''}/domains`, {
        domain: domain.trim(),
        subdomains,
        ...(easyDkim ? { easyDkim } : {}),
      }),
    ['domains', 'overview'],
    (addedDomain) => `Added ${addedDomain.domain}. Publish its DNS records, then verify the domain.`,
  );
  return (
    <FormDialog
      opened
      title="Add a domain"
      action="Add domain"
      busy={add.isPending}
      disabled={owner === null || domain.trim() === ''}
      error={add.error}
      onSubmit={() =>
        add.mutate(undefined, { onSuccess: (addedDomain) => navigate(path`/domains/${addedDomain.domain}`) })
      }
      onClose={onClose}
    >
      {account === null ? <AccountSelect label="Account" value={owner} required onChange={setChosenAccount} /> : null}
      <TextInput
        label="Domain"
        description="The part of the sender addresses after the @, such as mail.example.com"
        value={domain}
        onChange={(event) => setDomain(event.currentTarget.value)}
        autoComplete="off"
        autoCapitalize="off"
        spellCheck={false}
        required
        data-autofocus
      />
      <Checkbox
        label="Also allow subdomains to send"
        checked={subdomains}
        onChange={(event) => setSubdomains(event.currentTarget.checked)}
      />
      {transport === 'ses' ? (
        <Checkbox
          label="Also sign with keys of Amazon SES (Easy DKIM)"
          checked={easyDkim}
          onChange={(event) => setEasyDkim(event.currentTarget.checked)}
        />
      ) : null}
    </FormDialog>
  );
}
