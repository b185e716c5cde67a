/**
 * Submits a test message, with a button or with a curl command that contains an API key, and then shows the state of
 * the test message.
 */
import { Anchor, Button, Group, Loader, NativeSelect, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { createFirstCurlCommand } from '../../../src/http/curl';
import { FIRST_SENDER, getFirstRecipient } from '../../../src/model/outcome';
import type { EffectiveSettings } from '../../../src/operations/installation.ts';
import type { CreatedKey } from '../../../src/operations/keys.ts';
import type { Session } from '../../../src/operator/schemas.ts';
import { useAccounts } from '../accounts/queries';
import { get, path, post } from '../api/client';
import { useDomains } from '../domains/queries';
import { Copyable } from '../parts/copyable';
import { ErrorAlert } from '../parts/page-states';
import { SendForm } from './send-form';
import { FirstMessageStatus, SentMessageStatus } from './test-message-status';
import './setup.css';

/** The name of the account that the service creates on an empty database, together with the first API key. */
const FIRST_ACCOUNT = 'default';

interface TestMessageProps {
  readonly session: Session;
  /**
   * True on an installation without messages: the form also shows a curl command, and the next accepted message counts
   * as the test message. If false, only a message that the form has sent counts as the test message.
   */
  readonly isFirst: boolean;
}

export function TestMessage({ session, isFirst }: TestMessageProps) {
  const { publicUrl, transport } = session;
  const accounts = useAccounts();
  const [chosenAccount, setChosenAccount] = useState<string | null>(null);
  const [sentId, setSentId] = useState<string | null>(null);
  if (publicUrl === null)
    return (
      <div>
        This process accepts no messages: its <code>POSTRIDER_ROLES</code> do not include <code>api</code>. Submit to a
        node with this role.
      </div>
    );
  if (accounts.isPending) return <Loader size="sm" aria-label="Loading" />;
  if (accounts.isError) return <ErrorAlert error={accounts.error} retry={() => accounts.refetch()} />;
  const names = accounts.data.filter(({ state }) => state === 'active').map(({ name }) => name);
  const account = chosenAccount ?? names.find((name) => name === FIRST_ACCOUNT) ?? names[0];
  if (account === undefined)
    return (
      <div className="sentence">
        No account can send.{' '}
        <Anchor component={Link} href="/accounts" inherit>
          Create or unlock an account
        </Anchor>
        .
      </div>
    );
  return (
    <div className="test-message">
      {names.length > 1 ? (
        <NativeSelect
          label="Account"
          data={names}
          value={account}
          maw="20rem"
          onChange={(event) => setChosenAccount(event.currentTarget.value)}
        />
      ) : null}
      <Submission
        key={account}
        session={session}
        publicUrl={publicUrl}
        account={account}
        withCommand={isFirst}
        onAccepted={setSentId}
      />
      {sentId !== null ? <SentMessageStatus key={sentId} id={sentId} isCaptured={transport === 'capture'} /> : null}
      {sentId === null && isFirst ? <FirstMessageStatus isCaptured={transport === 'capture'} /> : null}
    </div>
  );
}

interface SubmissionProps {
  readonly session: Session;
  readonly publicUrl: string;
  readonly account: string;
  readonly withCommand: boolean;
  readonly onAccepted: (id: string) => void;
}

function Submission({ session, publicUrl, account, withCommand, onAccepted }: SubmissionProps) {
  const { transport, firstKey } = session;
  const sender = useSender(transport, account);
  const keyCreation = useMutation({
    mutationFn: () => post<CreatedKey>(path`/accounts/${account}/keys`, { name: 'first message' }),
  });
  if (sender === undefined) return <Loader size="sm" aria-label="Loading" />;
  if (sender === null)
    return (
      <div className="sentence">
        Messages of the account “{account}” are refused: it has no authenticated domain.{' '}
        <Anchor component={Link} href="/domains" inherit>
          Add a domain
        </Anchor>
        .
      </div>
    );
  const isFirstKey = account === FIRST_ACCOUNT && firstKey !== null && keyCreation.data === undefined;
  const key = keyCreation.data?.key ?? (isFirstKey ? firstKey : null);
  const sendForm = <SendForm transport={transport} account={account} sender={sender} onAccepted={onAccepted} />;
  if (!withCommand) return sendForm;
  if (key === null)
    return (
      <>
        {sendForm}
        <div>A client needs an API key. A key is shown only once, when it is created.</div>
        <Group>
          <Button variant="default" onClick={() => keyCreation.mutate()} loading={keyCreation.isPending}>
            Create a key
          </Button>
        </Group>
        {keyCreation.isError ? <ErrorAlert error={keyCreation.error} /> : null}
      </>
    );
  const command = createFirstCurlCommand({
    publicUrl: toReachableUrl(publicUrl),
    key,
    from: sender,
    to: getFirstRecipient(transport),
  });
  return (
    <>
      {sendForm}
      <div>Or run this command on the machine of the service, or on a machine that can connect to it:</div>
      <Copyable value={command} label="the command" block />
      <Text size="sm" c="dimmed">
        {isFirstKey
          ? `The command contains the first key of the account “${account}”. The key is shown until the first message is accepted, for at most one hour after the service started. Store it in a safe place.`
          : `The command contains the new key of the account “${account}”. The key is shown only once. Store it in a safe place.`}
      </Text>
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

/** Returns `publicUrl`. If the listener is bound to all addresses, the host is replaced by the host of this page. */
function toReachableUrl(publicUrl: string): string {
  if (publicUrl.startsWith('unix:')) return publicUrl;
  const { protocol, hostname, port } = new URL(publicUrl);
  if (hostname !== '0.0.0.0' && hostname !== '[::]') return publicUrl;
  return `${protocol}//${window.location.hostname}${port === '' ? '' : `:${port}`}`;
}
