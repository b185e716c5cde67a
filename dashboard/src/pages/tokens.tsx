/** The tokens of the operator API: create, revoke. A new token is shown once. */
import { Button, Code, Switch, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { CreatedToken, TokenEntry } from '../../../src/operations/tokens/schemas.ts';
import { get } from '../api/client';
import { useUrlState } from '../api/url-state';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { SecretDialog } from '../parts/secret-dialog';
import { StatusBadge } from '../parts/status-badge';
import { formatUtc } from '../parts/time';
import { CreateTokenDialog, RevokeTokenDialog } from '../tokens/token-dialogs';

type OpenDialog =
  | { readonly kind: 'create' }
  | { readonly kind: 'made'; readonly made: CreatedToken }
  | { readonly kind: 'revoke'; readonly token: TokenEntry };

export function TokensPage() {
  const tokens = useQuery({ queryKey: ['tokens'], queryFn: () => get<readonly TokenEntry[]>('/tokens') });
  const [urlState, setUrlState] = useUrlState();
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const showsAll = urlState.get('tokens') === 'all';
  const allTokens = tokens.data ?? [];
  const working = allTokens.filter(({ status }) => status === 'works');
  const shownTokens = showsAll ? allTokens : working;
  const closeDialog = () => setDialog(null);
  return (
    <>
      <PageHead title="API tokens">
        <Button onClick={() => setDialog({ kind: 'create' })}>Create token</Button>
      </PageHead>
      <Text size="sm" c="dimmed" mb="md">
        Programs use the operator API with a token: <Code>Authorization: Bearer TOKEN</Code>. To submit messages, a
        program needs a key of an account instead.
      </Text>
      {tokens.isPending ? <Loading /> : null}
      {tokens.isError ? <ErrorAlert error={tokens.error} retry={tokens.refetch} /> : null}
      {allTokens.length > working.length ? (
        <Switch
          mb="sm"
          label={`Also show expired and revoked tokens (${allTokens.length - working.length})`}
          checked={showsAll}
          onChange={(event) => setUrlState({ tokens: event.currentTarget.checked ? 'all' : null }, true)}
        />
      ) : null}
      {tokens.isSuccess && shownTokens.length === 0 ? (
        <EmptyState title="No tokens">
          Create one here, or with <Code>postrider token create NAME</Code>
        </EmptyState>
      ) : null}
      {shownTokens.length === 0 ? null : (
        <TokenTable tokens={shownTokens} onRevoke={(token) => setDialog({ kind: 'revoke', token })} />
      )}
      {dialog?.kind === 'create' ? (
        <CreateTokenDialog onMade={(made) => setDialog({ kind: 'made', made })} onClose={closeDialog} />
      ) : null}
      {dialog?.kind === 'revoke' ? <RevokeTokenDialog token={dialog.token} onClose={closeDialog} /> : null}
      {dialog?.kind === 'made' ? (
        <SecretDialog
          title="New token"
          secret={dialog.made.token}
          label="the token"
          text="Copy the token to the configuration of the program. It is shown only once; the service stores only a digest."
          onStored={closeDialog}
        >
          {dialog.made.expires === null ? null : <Text>The token expires at {formatUtc(dialog.made.expires)}.</Text>}
        </SecretDialog>
      ) : null}
    </>
  );
}

interface TokenTableProps {
  readonly tokens: readonly TokenEntry[];
  readonly onRevoke: (token: TokenEntry) => void;
}

function TokenTable({ tokens, onRevoke }: TokenTableProps) {
  return (
    <Table>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col">Token</Table.Th>
          <Table.Th scope="col">State</Table.Th>
          <Table.Th scope="col" visibleFrom="xs">
            Access
          </Table.Th>
          <Table.Th scope="col" visibleFrom="sm">
            Last used
          </Table.Th>
          <Table.Th scope="col" visibleFrom="md">
            Created
          </Table.Th>
          <Table.Th scope="col" visibleFrom="sm">
            Expires
          </Table.Th>
          <Table.Th scope="col">
            <span className="unseen">Actions</span>
          </Table.Th>
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {tokens.map((token) => (
          <Table.Tr key={token.id}>
            <Table.Td>
              <Text inherit className="wrap">
                {token.name}
              </Text>
              <Text size="sm" c="dimmed" ff="monospace" style={{ whiteSpace: 'nowrap' }}>
                {token.prefix}…
              </Text>
            </Table.Td>
            <Table.Td>
              <StatusBadge tone={token.status === 'works' ? 'success' : 'neutral'}>
                {token.status === 'works' ? 'active' : token.status}
              </StatusBadge>
            </Table.Td>
            <Table.Td visibleFrom="xs">{token.readOnly ? 'read only' : 'read and change'}</Table.Td>
            <Table.Td visibleFrom="sm">
              {token.lastUsed === null ? 'never' : <RelativeTime at={token.lastUsed} />}
            </Table.Td>
            <Table.Td visibleFrom="md">
              <RelativeTime at={token.created} />
            </Table.Td>
            <Table.Td visibleFrom="sm">
              {token.expires === null ? 'never' : <RelativeTime at={token.expires} />}
            </Table.Td>
            <Table.Td ta="right">
              {token.status === 'works' ? (
                <Button
                  size="compact-sm"
                  variant="default"
                  aria-label={`Revoke ${token.name}`}
                  onClick={() => onRevoke(token)}
                >
                  Revoke
                </Button>
              ) : null}
            </Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}
