/** For a new installation: a curl command that submits a message, with a key, and then the state of that message. */
import { Alert, Anchor, Button, Group, Loader, NativeSelect, Paper, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { createFirstCurlCommand, FIRST_SENDER, getFirstRecipient } from '../../../src/http/curl';
import type { EffectiveSettings } from '../../../src/operations/config/schemas.ts';
import type { CreatedKey } from '../../../src/operations/keys/schemas.ts';
import type { Session } from '../../../src/operator/schemas.ts';
import { useAccounts } from '../accounts/queries';
import { get, path, post } from '../api/client';
import { useDomains } from '../domains/queries';
import { Copyable } from './copyable';
import { FirstMessageStatus } from './first-message-status';
import { ErrorAlert } from './page-states';

/** The account of the first key, which the service creates on an empty database. */
const FIRST_ACCOUNT = 'default';

export function FirstMessage({ session }: { readonly session: Session }) {
  const { publicUrl, firstKey } = session;
  return (
    <Paper withBorder p="md" maw="50rem" mx="auto">
      <Stack gap="sm">
        <Title order={2} size="h4">
          Send a first message
        </Title>
        {publicUrl === null ? (
          <Text>
            This process accepts no messages: its <code>POSTRIDER_ROLES</code> do not include <code>api</code>. Submit
            to a node with this role.
          </Text>
        ) : firstKey === null ? (
          <CommandWithNewKey session={session} publicUrl={publicUrl} />
        ) : (
          <Command session={session} publicUrl={publicUrl} account={FIRST_ACCOUNT} secret={firstKey}>
            The command contains the first key of the account “{FIRST_ACCOUNT}”. It is shown until the first message,
            for at most one hour after the start. Store it in a safe place.
          </Command>
        )}
        {publicUrl === null ? null : <FirstMessageStatus captured={session.transport === 'capture'} />}
      </Stack>
    </Paper>
  );
}

interface NewKey {
  readonly account: string;
  readonly secret: string;
}

/** Shows the command with another key of the chosen account, which it creates if the first key is no longer shown. */
function CommandWithNewKey({ session, publicUrl }: { readonly session: Session; readonly publicUrl: string }) {
  const [chosenAccount, setChosenAccount] = useState<string | null>(null);
  const accounts = useAccounts();
  const create = useMutation({
    mutationFn: async (account: string): Promise<NewKey> => {
      const { key } = await post<CreatedKey>(path`/accounts/${account}/keys`, { name: 'first message' });
      return { account, secret: key };
    },
  });
  if (create.data !== undefined)
    return (
      <Command session={session} publicUrl={publicUrl} {...create.data}>
        The command contains the new key of the account “{create.data.account}”. The key is shown only once. Store it in
        a safe place.
      </Command>
    );
  if (accounts.isPending) return <Loader size="sm" aria-label="Loading" />;
  if (accounts.isError) return <ErrorAlert error={accounts.error} retry={() => accounts.refetch()} />;
  const activeAccounts = accounts.data.filter(({ state }) => state === 'active').map(({ name }) => name);
  const account = chosenAccount ?? activeAccounts[0];
  if (account === undefined)
    return (
      <Text>
        No account can send.{' '}
        <Anchor component={Link} href="/accounts">
          Create or unlock an account
        </Anchor>
        .
      </Text>
    );
  return (
    <>
      <Text>A message is submitted with an API key. A key is shown only once, when it is created.</Text>
      <Group align="flex-end">
        {activeAccounts.length > 1 ? (
          <NativeSelect
            label="Account"
            data={activeAccounts}
            value={account}
            onChange={(event) => setChosenAccount(event.currentTarget.value)}
          />
        ) : null}
        <Button onClick={() => create.mutate(account)} loading={create.isPending}>
          Create a key
        </Button>
      </Group>
      {create.isError ? <ErrorAlert error={create.error} /> : null}
    </>
  );
}

interface CommandProps extends NewKey {
  readonly session: Session;
  readonly publicUrl: string;
  /** A note about the key. */
  readonly children: ReactNode;
}

function Command({ session: { transport }, publicUrl, account, secret, children }: CommandProps) {
  const sender = useSender(transport, account);
  if (sender === undefined) return <Loader size="sm" aria-label="Loading" />;
  const command = createFirstCurlCommand({
    publicUrl: toReachableUrl(publicUrl),
    key: secret,
    from: sender ?? FIRST_SENDER,
    to: getFirstRecipient(transport),
  });
  return (
    <>
      <Text>Run this command on the machine of the service, or on a machine that can connect to it:</Text>
      <Copyable value={command} label="the command" block />
      <Text size="sm" c="dimmed">
        {children}
      </Text>
      {transport === 'capture' ? null : (
        <Text size="sm" c="dimmed">
          The mailbox simulator receives this message, so it does not leave the service. To receive it yourself, replace
          the recipient with your address.
        </Text>
      )}
      {sender === null ? (
        <Alert color="gray" variant="outline">
          <Text fw={600}>This message will be refused.</Text>The domain of the sender must be authenticated first.{' '}
          <Anchor component={Link} href="/domains">
            Add a domain
          </Anchor>
          .
        </Alert>
      ) : null}
    </>
  );
}

/**
 * Returns an address from which this account can send; null if the account has no such address, undefined while
 * loading.
 */
function useSender(transport: string, account: string): string | null | undefined {
  const needsDomain = transport !== 'capture';
  const domains = useDomains({ enabled: needsDomain });
  const settings = useQuery({
    queryKey: ['config'],
    queryFn: () => get<EffectiveSettings>('/config'),
    enabled: needsDomain,
  });
  if (!needsDomain) return FIRST_SENDER;
  if (domains.isPending || settings.isPending) return undefined;
  const accountDomain = domains.data?.find((domain) => domain.sends && domain.account === account);
  if (accountDomain !== undefined) return `hello@${accountDomain.domain}`;
  const isAnySenderAccepted =
    settings.data?.some(({ name, value }) => name === 'POSTRIDER_SENDERS' && value === 'any') === true;
  return isAnySenderAccepted ? FIRST_SENDER : null;
}

/** Returns the URL with the host of this page if the listener is bound to all addresses. */
function toReachableUrl(publicUrl: string): string {
  const { protocol, hostname, port } = new URL(publicUrl);
  if (hostname !== '0.0.0.0' && hostname !== '[::]') return publicUrl;
  return `${protocol}//${window.location.hostname}${port === '' ? '' : `:${port}`}`;
}
