/** The actions on a domain: verify, rotate keys, cancel a rotation, allow subdomains, set the return path, remove. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { DomainDetails, RotatedDomain, VerifiedDomain } from '../../../src/operations/domains/schemas.ts';
import { patch, path, post, remove } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { ErrorAlert } from '../parts/page-states';
import { formatFoundRecords } from './domain-badge';
import { ReturnPathDialog } from './return-path-dialog';

type OpenDialog = 'rotate' | 'cancel' | 'return-path' | 'remove' | null;

export function DomainActions({ domain, transport }: { readonly domain: DomainDetails; readonly transport: string }) {
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const domainPath = path`/domains/${domain.domain}`;
  const hasStagedKeys = domain.keys.some(({ state }) => state === 'staged');
  const closeDialog = () => setDialog(null);
  // Stores the response in the cache. The page then shows the response without a second DNS query.
  const cacheDomain = (changedDomain: DomainDetails) => queries.setQueryData(['domains', domain.domain], changedDomain);

  const verify = useApiMutation(
    () => post<VerifiedDomain>(`${domainPath}/verify`),
    ['overview'],
    (changedDomain) => `${changedDomain.domain} is ${changedDomain.status}: ${formatFoundRecords(changedDomain)}.`,
  );
  const subdomains = useApiMutation(
    () => patch<DomainDetails>(domainPath, { subdomains: !domain.subdomains }),
    ['domains'],
    (changedDomain) =>
      `Subdomains of ${changedDomain.domain} ${changedDomain.subdomains ? 'may send' : 'may not send'}.`,
  );
  const rotate = useApiMutation(
    (cancel: boolean) => post<RotatedDomain>(`${domainPath}/rotate`, cancel ? { cancel } : {}),
    ['domains'],
    (changedDomain, cancel) =>
      cancel
        ? `The staged keys of ${changedDomain.domain} are removed.`
        : `New keys of ${changedDomain.domain} are staged. Publish their DNS records.`,
  );
  const removal = useApiMutation(
    () => remove(domainPath),
    ['overview'],
    () => `Removed ${domain.domain}.`,
  );
  const showList = () => {
    navigate('/domains');
    // Only the list is reloaded, because the removed domain must not be queried again.
    void queries.invalidateQueries({ queryKey: ['domains'], exact: true });
  };
  const error = verify.error ?? subdomains.error;
  return (
    <>
      <Group gap="xs">
        {hasStagedKeys ? (
          <Button variant="default" onClick={() => setDialog('cancel')}>
            Cancel rotation
          </Button>
        ) : (
          <Button variant="default" onClick={() => setDialog('rotate')}>
            Rotate keys
          </Button>
        )}
        <Button
          variant="default"
          loading={subdomains.isPending}
          onClick={() => subdomains.mutate(undefined, { onSuccess: cacheDomain })}
        >
          {domain.subdomains ? 'Forbid subdomains' : 'Allow subdomains'}
        </Button>
        <Button variant="default" onClick={() => setDialog('return-path')}>
          Return path
        </Button>
        <Button variant="default" onClick={() => setDialog('remove')}>
          Remove
        </Button>
        <Button loading={verify.isPending} onClick={() => verify.mutate(undefined, { onSuccess: cacheDomain })}>
          Verify now
        </Button>
      </Group>
      {error === null ? null : (
        <div style={{ width: '100%' }}>
          <ErrorAlert error={error} />
        </div>
      )}
      <ConfirmDialog
        opened={dialog === 'rotate'}
        title={`Rotate the keys of ${domain.domain}?`}
        action="Stage new keys"
        busy={rotate.isPending}
        error={rotate.error}
        onConfirm={() => rotate.mutate(false, { onSuccess: closeDialog })}
        onClose={closeDialog}
      >
        New keys are created and staged, and this page lists their DNS records. The current keys continue to sign until
        a verification finds the new records. Then the current keys retire; their records must stay in DNS for some more
        days.
      </ConfirmDialog>
      <ConfirmDialog
        opened={dialog === 'cancel'}
        title="Cancel the rotation?"
        action="Remove staged keys"
        busy={rotate.isPending}
        error={rotate.error}
        onConfirm={() => rotate.mutate(true, { onSuccess: closeDialog })}
        onClose={closeDialog}
      >
        The staged keys are removed. The current keys continue to sign. You can remove the records of the staged keys
        from DNS.
      </ConfirmDialog>
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
            Its keys are deleted, and messages from it are refused with 403 from now on. If you add the domain again, it
            gets new keys, and their records must be published.
          </Text>
          {transport === 'ses' ? <Text>Amazon SES keeps the identity of this name. Delete it there.</Text> : null}
        </Stack>
      </ConfirmDialog>
    </>
  );
}
