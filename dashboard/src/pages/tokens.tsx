/** The page API tokens: lists, creates and revokes the tokens of the operator API. A new token is shown only once. */
import { Button, Code, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { CreatedToken, TokenEntry } from '../../../src/operations/tokens.ts';
import { get, path } from '../api/client';
import { type Credential, CredentialList } from '../credentials/credential-list';
import { RevokeDialog } from '../credentials/revoke-dialog';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { SecretDialog } from '../parts/secret-dialog';
import { formatTime } from '../parts/time';
import { CreateTokenDialog } from '../tokens/create-dialog';

type OpenDialog =
  | { readonly kind: 'create' }
  | { readonly kind: 'created'; readonly newToken: CreatedToken }
  | { readonly kind: 'revoke'; readonly token: Credential };

export function TokensPage() {
  const tokens = useQuery({ queryKey: ['tokens'], queryFn: () => get<readonly TokenEntry[]>('/tokens') });
  const [dialog, setDialog] = useState<OpenDialog | null>(null);
  const closeDialog = () => setDialog(null);
  return (
    <>
      <PageHead title="API tokens">
        <Button onClick={() => setDialog({ kind: 'create' })}>Create token</Button>
      </PageHead>
      <p className="page-intro">
        Programs use the operator API with a token: <Code>Authorization: Bearer TOKEN</Code>. To submit messages, a
        program needs a key of an account instead.
      </p>
      {tokens.isPending ? <Loading /> : null}
      {tokens.isError ? <ErrorAlert error={tokens.error} retry={tokens.refetch} /> : null}
      {tokens.data === undefined ? null : (
        <CredentialList
          noun="tokens"
          credentials={tokens.data.map(toCredential)}
          emptyState={
            <EmptyState title="No tokens">
              Create a token here, or with <Code>postrider token create NAME</Code>
            </EmptyState>
          }
          renderActions={(token) => (
            <Button
              size="compact-sm"
              variant="default"
              aria-label={`Revoke ${token.name}`}
              onClick={() => setDialog({ kind: 'revoke', token })}
            >
              Revoke
            </Button>
          )}
        />
      )}
      {dialog?.kind === 'create' ? (
        <CreateTokenDialog onCreated={(newToken) => setDialog({ kind: 'created', newToken })} onClose={closeDialog} />
      ) : null}
      {dialog?.kind === 'revoke' ? (
        <RevokeDialog
          noun="token"
          credential={dialog.token}
          apiPath={path`/tokens/${dialog.token.id}/revoke`}
          topic="tokens"
          consequence="Every later request with this token is refused."
          onClose={closeDialog}
        />
      ) : null}
      {dialog?.kind === 'created' ? (
        <SecretDialog
          title="New token"
          secret={dialog.newToken.token}
          label="the token"
          text="Copy the token to the configuration of the program. It is shown only once; the service stores only a digest."
          onStored={closeDialog}
        >
          {dialog.newToken.expires === null ? null : (
            <Text>The token expires at {formatTime(dialog.newToken.expires)}.</Text>
          )}
        </SecretDialog>
      ) : null}
    </>
  );
}

function toCredential({ status, scope, ...token }: TokenEntry): Credential {
  return {
    ...token,
    state: status === 'works' ? 'active' : status,
    access: scope,
  };
}
