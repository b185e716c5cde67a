/** The actions in the header of the domain page: verify, rotate keys, cancel a rotation. */
import { Button, Group } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { DomainDetails, RotatedDomain, VerifiedDomain } from '../../../src/operations/domain-details.ts';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { ConfirmDialog } from '../parts/confirm-dialog';
import { ErrorAlert } from '../parts/page-states';
import { formatFoundRecords } from './domain-badge';

type OpenDialog = 'rotate' | 'cancel' | null;

export function DomainActions({ domain }: { readonly domain: DomainDetails }) {
  const [dialog, setDialog] = useState<OpenDialog>(null);
  const queryClient = useQueryClient();
  const domainPath = path`/domains/${domain.domain}`;
  const hasStagedKeys = domain.keys.some(({ state }) => state === 'staged');
  const closeDialog = () => setDialog(null);
  // Stores the response in the cache. The page then shows the response without a second DNS query.
  const cacheDomain = (changedDomain: DomainDetails) =>
    queryClient.setQueryData(['domains', domain.domain], changedDomain);

  const verify = useApiMutation(
    () => post<VerifiedDomain>(`${domainPath}/verify`),
    ['overview'],
    (changedDomain) => `${changedDomain.domain} is ${changedDomain.status}: ${formatFoundRecords(changedDomain)}.`,
  );
  const rotate = useApiMutation(
    (cancel: boolean) => post<RotatedDomain>(`${domainPath}/rotate`, cancel ? { cancel } : {}),
    ['domains'],
    (changedDomain, cancel) =>
      cancel
        ? `The staged keys of ${changedDomain.domain} are removed.`
        : `New keys of ${changedDomain.domain} are staged. Publish their DNS records.`,
  );
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
        <Button loading={verify.isPending} onClick={() => verify.mutate(undefined, { onSuccess: cacheDomain })}>
          Verify now
        </Button>
      </Group>
      {verify.error === null ? null : (
        <div style={{ width: '100%' }}>
          <ErrorAlert error={verify.error} />
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
    </>
  );
}
