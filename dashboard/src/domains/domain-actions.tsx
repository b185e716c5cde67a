/** What is done to a domain: verified, its keys rotated or not after all, its subdomains allowed, removed. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useLocation } from 'wouter';
import type { DomainDetails, RotatedDomain, VerifiedDomain } from '../../../src/operations/domains/schemas.ts';
import { useChange } from '../api/change';
import { patch, path, post, remove } from '../api/client';
import { Ask } from '../parts/ask';
import { Failure } from '../parts/states';
import { foundText } from './domain-mark';

type Asking = 'rotate' | 'cancel' | 'remove' | null;

export function DomainActions({ domain, transport }: { readonly domain: DomainDetails; readonly transport: string }) {
  const [asking, setAsking] = useState<Asking>(null);
  const queries = useQueryClient();
  const [, go] = useLocation();
  const at = path`/domains/${domain.domain}`;
  const staged = domain.keys.some(({ state }) => state === 'staged');
  const stop = () => setAsking(null);
  // The answer is what the page shows: nothing is asked twice of slow DNS.
  const keep = (now: DomainDetails) => queries.setQueryData(['domains', domain.domain], now);

  const verify = useChange(
    () => post<VerifiedDomain>(`${at}/verify`),
    ['overview'],
    (now) => `${now.domain} is ${now.status}: ${foundText(now)}.`,
  );
  const subdomains = useChange(
    () => patch<DomainDetails>(at, { subdomains: !domain.subdomains }),
    ['domains'],
    (now) => `Subdomains of ${now.domain} ${now.subdomains ? 'may send too' : 'may not send'}.`,
  );
  const rotate = useChange(
    (cancel: boolean) => post<RotatedDomain>(`${at}/rotate`, cancel ? { cancel } : {}),
    ['domains'],
    (now, cancel) =>
      cancel
        ? `The staged keys of ${now.domain} are dropped.`
        : `New keys of ${now.domain} are staged: publish their records.`,
  );
  const drop = useChange(
    () => remove(at),
    ['overview'],
    () => `Removed ${domain.domain}.`,
  );
  const leave = () => {
    go('/domains');
    // The list alone: what is gone is not asked for again.
    void queries.invalidateQueries({ queryKey: ['domains'], exact: true });
  };
  const failed = verify.error ?? subdomains.error;
  return (
    <>
      <Group gap="xs" mb="md">
        <Button loading={verify.isPending} onClick={() => verify.mutate(undefined, { onSuccess: keep })}>
          Verify now
        </Button>
        {staged ? (
          <Button variant="default" onClick={() => setAsking('cancel')}>
            Cancel rotation
          </Button>
        ) : (
          <Button variant="default" onClick={() => setAsking('rotate')}>
            Rotate keys
          </Button>
        )}
        <Button
          variant="default"
          loading={subdomains.isPending}
          onClick={() => subdomains.mutate(undefined, { onSuccess: keep })}
        >
          {domain.subdomains ? 'Forbid subdomains' : 'Allow subdomains'}
        </Button>
        <Button variant="default" onClick={() => setAsking('remove')}>
          Remove
        </Button>
      </Group>
      {failed === null ? null : <Failure error={failed} />}
      <Ask
        opened={asking === 'rotate'}
        title={`Rotate the keys of ${domain.domain}?`}
        action="Stage new keys"
        busy={rotate.isPending}
        error={rotate.error}
        onConfirm={() => rotate.mutate(false, { onSuccess: stop })}
        onClose={stop}
      >
        New keys are made and staged: their records are listed here to be published. The keys of now go on signing until
        a verification has found the new records; then they retire, and their records must stay for some days more.
      </Ask>
      <Ask
        opened={asking === 'cancel'}
        title="Drop the staged keys?"
        action="Drop them"
        busy={rotate.isPending}
        error={rotate.error}
        onConfirm={() => rotate.mutate(true, { onSuccess: stop })}
        onClose={stop}
      >
        The keys of now go on signing. Records of the staged ones that are published already may be taken out of DNS.
      </Ask>
      <Ask
        opened={asking === 'remove'}
        title={`Remove ${domain.domain}?`}
        action="Remove domain"
        busy={drop.isPending}
        error={drop.error}
        onConfirm={() => drop.mutate(undefined, { onSuccess: leave })}
        onClose={stop}
      >
        <Stack>
          <Text>
            Its keys are forgotten, and mail from it is refused with 403 from now on. Added again it gets other keys,
            whose records have to be published anew.
          </Text>
          {transport === 'ses' ? <Text>Amazon SES keeps its identity of that name; delete it there.</Text> : null}
        </Stack>
      </Ask>
    </>
  );
}
