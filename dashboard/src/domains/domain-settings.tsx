/** The settings of a domain, with the actions that change them: allow subdomains, set the return path, remove. */
import { Button, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { DomainDetails } from '../../../src/operations/domain-details.ts';
import { patch, path, remove } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { Card } from '../parts/card';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { ErrorAlert } from '../parts/page-states';
import { formatTime } from '../parts/time';
import { ReturnPathDialog } from './return-path-dialog';

export function DomainSettings({ domain, transport }: { readonly domain: DomainDetails; readonly transport: string }) {
  const [dialog, setDialog] = useState<'return-path' | 'remove' | null>(null);
  const queryClient = useQueryClient();
  const [, navigate] = useLocation();
  const domainPath = path`/domains/${domain.domain}`;
  const closeDialog = () => setDialog(null);
  const cacheDomain = (changedDomain: DomainDetails) =>
    queryClient.setQueryData(['domains', domain.domain], changedDomain);
  const toggleSubdomains = useApiMutation(
    () => patch<DomainDetails>(domainPath, { subdomains: !domain.subdomains }),
    ['domains'],
    (changedDomain) =>
      `Subdomains of ${changedDomain.domain} ${changedDomain.subdomains ? 'may send' : 'may not send'}.`,
  );
  const removal = useApiMutation(
    () => remove(domainPath),
    ['overview'],
    () => `Removed ${domain.domain}.`,
  );
  const showList = () => {
    navigate('/domains');
    // Only the list is reloaded, because the removed domain must not be queried again.
    void queryClient.invalidateQueries({ queryKey: ['domains'], exact: true });
  };
  return (
    <Card
      title="Settings"
      aside={
        <>
          <Button
            variant="default"
            size="xs"
            loading={toggleSubdomains.isPending}
            onClick={() => toggleSubdomains.mutate(undefined, { onSuccess: cacheDomain })}
          >
            {domain.subdomains ? 'Forbid subdomains' : 'Allow subdomains'}
          </Button>
          <Button variant="default" size="xs" onClick={() => setDialog('return-path')}>
            Return path
          </Button>
          <Button variant="default" size="xs" onClick={() => setDialog('remove')}>
            Remove
          </Button>
        </>
      }
    >
      {toggleSubdomains.isError ? <ErrorAlert error={toggleSubdomains.error} /> : null}
      <dl className="facts">
        {listFacts(domain).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="wrap">{value}</dd>
          </div>
        ))}
      </dl>
      {dialog === 'return-path' ? (
        <ReturnPathDialog domain={domain} onChanged={cacheDomain} onClose={closeDialog} />
      ) : null}
      <ConfirmDialog
        opened={dialog === 'remove'}
        title={`Remove ${domain.domain}?`}
        action="Remove domain"
        busy={removal.isPending}
        error={removal.error}
        onConfirm={() => removal.mutate(undefined, { onSuccess: showList })}
        onClose={closeDialog}
      >
        <Stack>
          <Text>
            The keys of the domain are deleted, and messages from the domain are refused with 403 from now on. If you
            add the domain again, it gets new keys, and their records must be published.
          </Text>
          {transport === 'ses' ? (
            <Text>Amazon SES keeps the identity of this name. Delete the identity in Amazon SES.</Text>
          ) : null}
        </Stack>
      </ConfirmDialog>
    </Card>
  );
}

function listFacts(domain: DomainDetails): readonly (readonly [name: string, value: string])[] {
  const { unicode, domain: name, sends, subdomains, returnPath, created, authenticated } = domain;
  return [
    ...(unicode === name ? [] : [['Name', unicode] as const]),
    ['Messages', sends ? 'accepted' : 'refused'],
    ['Subdomains', subdomains ? 'allowed' : 'not allowed'],
    ['Return path', returnPath?.name ?? 'of the service'],
    ['Added', formatTime(created)],
    ['Authenticated since', authenticated === null ? 'not yet' : formatTime(authenticated)],
  ];
}
