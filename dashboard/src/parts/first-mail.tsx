/** For a newcomer: the one command that submits a mail, with a key in it, and then the mail's arrival. */
import { Alert, Anchor, Button, Group, Loader, NativeSelect, Paper, Stack, Text, Title } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { Link } from 'wouter';
import { FIRST_SENDER, firstCurl, firstRecipient } from '../../../src/http/curl';
import type { EffectiveSettings } from '../../../src/operations/config/schemas.ts';
import type { MadeKey } from '../../../src/operations/keys/schemas.ts';
import type { Session } from '../../../src/operator/schemas.ts';
import { useAccounts } from '../accounts/queries';
import { get, path, post } from '../api/client';
import { useDomains } from '../domains/queries';
import { Copyable } from './copy';
import { FirstArrival } from './first-arrival';
import { Failure } from './states';

/** The account of an empty store's first key. */
const FIRST_ACCOUNT = 'default';

export function FirstMail({ session }: { readonly session: Session }) {
  const { publicUrl, firstKey } = session;
  return (
    <Paper withBorder p="md" maw="50rem" mx="auto">
      <Stack gap="sm">
        <Title order={2} size="h4">
          Send a first mail
        </Title>
        {publicUrl === null ? (
          <Text>
            This process takes no mail: its <code>POSTRIDER_ROLES</code> are without <code>api</code>. Send through one
            that has it.
          </Text>
        ) : firstKey === null ? (
          <WithNewKey session={session} publicUrl={publicUrl} />
        ) : (
          <Command session={session} publicUrl={publicUrl} account={FIRST_ACCOUNT} secret={firstKey}>
            The key in it was made at this start, for the account “{FIRST_ACCOUNT}”. It is shown for an hour from the
            start: keep it somewhere safe.
          </Command>
        )}
        {publicUrl === null ? null : <FirstArrival captured={session.transport === 'capture'} />}
      </Stack>
    </Paper>
  );
}

interface KeyMade {
  readonly account: string;
  readonly secret: string;
}

/** Where the first key is not known any more: one more, for the account that is chosen. */
function WithNewKey({ session, publicUrl }: { readonly session: Session; readonly publicUrl: string }) {
  const [chosen, setChosen] = useState<string | null>(null);
  const accounts = useAccounts();
  const make = useMutation({
    mutationFn: async (account: string): Promise<KeyMade> => {
      const { key } = await post<MadeKey>(path`/accounts/${account}/keys`, { name: 'first mail' });
      return { account, secret: key };
    },
  });
  if (make.data !== undefined)
    return (
      <Command session={session} publicUrl={publicUrl} {...make.data}>
        The new key in it, of the account “{make.data.account}”, is shown only now: keep it somewhere safe.
      </Command>
    );
  if (accounts.isPending) return <Loader size="sm" aria-label="Loading" />;
  if (accounts.isError) return <Failure error={accounts.error} retry={() => accounts.refetch()} />;
  const open = accounts.data.filter(({ state }) => state === 'active').map(({ name }) => name);
  const account = chosen ?? open[0];
  if (account === undefined)
    return (
      <Text>
        There is no account that may send.{' '}
        <Anchor component={Link} href="/accounts">
          Make or unlock one
        </Anchor>
        .
      </Text>
    );
  return (
    <>
      <Text>A mail is submitted with an API key. Keys are shown only when they are made.</Text>
      <Group align="flex-end">
        {open.length > 1 ? (
          <NativeSelect
            label="Account"
            data={open}
            value={account}
            onChange={(event) => setChosen(event.currentTarget.value)}
          />
        ) : null}
        <Button onClick={() => make.mutate(account)} loading={make.isPending}>
          Make a key for it
        </Button>
      </Group>
      {make.isError ? <Failure error={make.error} /> : null}
    </>
  );
}

interface CommandProps extends KeyMade {
  readonly session: Session;
  readonly publicUrl: string;
  /** What is to be known of the key. */
  readonly children: ReactNode;
}

function Command({ session: { transport }, publicUrl, account, secret, children }: CommandProps) {
  const sender = useSender(transport, account);
  if (sender === undefined) return <Loader size="sm" aria-label="Loading" />;
  const line = firstCurl({
    publicUrl: reachable(publicUrl),
    key: secret,
    from: sender ?? FIRST_SENDER,
    to: firstRecipient(transport),
  });
  return (
    <>
      <Text>Paste this into a terminal of the machine that the service runs on, or of one that reaches it:</Text>
      <Copyable value={line} label="the command" block />
      <Text size="sm" c="dimmed">
        {children}
      </Text>
      {transport === 'capture' ? null : (
        <Text size="sm" c="dimmed">
          The simulator takes this mail, so that it never leaves the service. With your own address in its place it
          comes to your mailbox.
        </Text>
      )}
      {sender === null ? (
        <Alert color="gray" variant="outline">
          <Text fw={600}>It will be refused as yet.</Text>A sender’s domain must be authenticated for its account first.{' '}
          <Anchor component={Link} href="/domains">
            Add one under Domains
          </Anchor>
          .
        </Alert>
      ) : null}
    </>
  );
}

/** An address from which this account may send; null where there is none yet, undefined while that is not known. */
function useSender(transport: string, account: string): string | null | undefined {
  const relayed = transport !== 'capture';
  const domains = useDomains({ enabled: relayed });
  const settings = useQuery({
    queryKey: ['config'],
    queryFn: () => get<EffectiveSettings>('/config'),
    enabled: relayed,
  });
  if (!relayed) return FIRST_SENDER;
  if (domains.isPending || settings.isPending) return undefined;
  const own = domains.data?.find((one) => one.sends && one.account === account);
  if (own !== undefined) return `hello@${own.domain}`;
  const any = settings.data?.some(({ name, value }) => name === 'POSTRIDER_SENDERS' && value === 'any') === true;
  return any ? FIRST_SENDER : null;
}

/** A listener on every address is reached at the one that this page came from. */
function reachable(publicUrl: string): string {
  const { protocol, hostname, port } = new URL(publicUrl);
  if (hostname !== '0.0.0.0' && hostname !== '[::]') return publicUrl;
  return `${protocol}//${window.location.hostname}${port === '' ? '' : `:${port}`}`;
}
