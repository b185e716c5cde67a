/**
 * Sends a test message through the public listener of the node, and shows the request, and the response that a client
 * receives. The service uses a temporary key of the account, so the page contains no key.
 */
import { Button, Select, Textarea, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { FIRST_SENDER, getFirstRecipient, SEND_MAIL_PATH } from '../../../src/model/outcome.ts';
import type { TestOutcome } from '../../../src/operations/message-test.ts';
import type { Session } from '../../../src/operator/schemas.ts';
import { useAccounts } from '../accounts/queries';
import { path, post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { useDomains } from '../domains/queries';
import { Card } from '../parts/card';
import { findFieldError } from '../parts/field-error';
import { ErrorAlert } from '../parts/page-states';
import { StatusBadge } from '../parts/status-badge';
import { TextWithCode } from '../parts/text-with-code';
import { formatDuration } from '../parts/time';
import { type ApiDocument, findPublicError, listPublicErrors } from './document';
import { toSentence } from './public-interface';

interface ConsoleProps {
  readonly session: Session;
  /** The OpenAPI document of the public listener, which describes the errors of the listener. */
  readonly document: ApiDocument;
}

type FieldName = 'to' | 'from' | 'subject' | 'message' | 'idempotencyKey';

export function Console({ session, document }: ConsoleProps) {
  const queryClient = useQueryClient();
  const accounts = useAccounts();
  const domains = useDomains({ enabled: session.transport !== 'capture' });
  const [chosenAccount, setChosenAccount] = useState<string | null>(null);
  const [typedValues, setTypedValues] = useState<Readonly<Partial<Record<FieldName, string>>>>({});
  const accountNames = (accounts.data ?? []).map(({ name }) => name);
  const account = chosenAccount ?? accountNames.find((name) => name === 'default') ?? accountNames[0] ?? null;
  const ownDomain = domains.data?.find((domain) => domain.sends && domain.account === account)?.domain;
  const initialValues: Readonly<Record<FieldName, string>> = {
    to: getFirstRecipient(session.transport),
    from: ownDomain === undefined ? FIRST_SENDER : `hello@${ownDomain}`,
    subject: 'Hello',
    message: 'It works.',
    idempotencyKey: '',
  };
  const values = { ...initialValues, ...typedValues };
  const send = useApiMutation(() => {
    const { idempotencyKey, ...fields } = values;
    return post<TestOutcome>('/messages/test', {
      account,
      ...fields,
      ...(idempotencyKey === '' ? {} : { idempotencyKey }),
    });
  }, ['messages', 'accounts', 'inbox']);
  const getFieldProps = (name: FieldName) => ({
    value: values[name],
    onChange: (event: { readonly currentTarget: { readonly value: string } }) => {
      const { value } = event.currentTarget;
      setTypedValues((previousValues) => ({ ...previousValues, [name]: value }));
    },
    error: findFieldError(send.error, name),
    autoComplete: 'off',
    spellCheck: false,
  });
  const hasFieldError = (Object.keys(initialValues) as FieldName[]).some(
    (name) => findFieldError(send.error, name) !== null,
  );
  if (session.publicUrl === null)
    return (
      <Card title="Send a test message">
        <p className="muted">
          <TextWithCode text="This node accepts no messages: its `POSTRIDER_ROLES` do not include `api`. Open the dashboard of a node with this role." />
        </p>
      </Card>
    );
  return (
    <Card title="Send a test message" secondary="through the public listener">
      <form
        className="console"
        onSubmit={(event) => {
          event.preventDefault();
          send.mutate(undefined, { onSettled: () => void queryClient.invalidateQueries({ queryKey: ['found'] }) });
        }}
      >
        <Select
          label="Account"
          description="The request uses a temporary key of this account. The message counts toward its limits."
          data={accountNames}
          value={account}
          onChange={setChosenAccount}
          searchable
          allowDeselect={false}
          limit={50}
          nothingFoundMessage="No account has this name"
          error={findFieldError(send.error, 'account') ?? accounts.error?.message}
        />
        <TextInput label="to" {...getFieldProps('to')} />
        <TextInput label="from" {...getFieldProps('from')} />
        <TextInput label="subject" {...getFieldProps('subject')} />
        <Textarea label="message" autosize minRows={3} maxRows={10} {...getFieldProps('message')} />
        <TextInput
          label="Idempotency-Key"
          description="A header. Empty: the header is not sent."
          {...getFieldProps('idempotencyKey')}
        />
        {send.isError && !hasFieldError ? <ErrorAlert error={send.error} /> : null}
        <Button type="submit" loading={send.isPending} disabled={account === null}>
          Send request
        </Button>
      </form>
      <div role="status">
        {send.data === undefined ? null : (
          <Outcome outcome={send.data} document={document} isCaptured={session.transport === 'capture'} />
        )}
      </div>
    </Card>
  );
}

interface OutcomeProps {
  readonly outcome: TestOutcome;
  readonly document: ApiDocument;
  readonly isCaptured: boolean;
}

function Outcome({ outcome: { id, request, response }, document, isCaptured }: OutcomeProps) {
  const isAccepted = response.status === 201;
  return (
    <div className="outcome">
      <div className="outcome-head">
        <StatusBadge tone={isAccepted ? 'success' : 'error'}>{String(response.status)}</StatusBadge>
        <span className="muted">after {formatDuration(response.durationMs)}</span>
        {id === null ? null : (
          <span className="outcome-links">
            <Link href={path`/messages/${id}`}>Show the message</Link>
            {isCaptured ? <Link href={path`/inbox/${id}`}>Show it in the inbox</Link> : null}
          </span>
        )}
      </div>
      {isAccepted ? null : <Explanation response={response} document={document} />}
      <h3>Response</h3>
      <pre className="source sunken">{formatHttp(`HTTP/1.1 ${response.status}`, response.headers, response.body)}</pre>
      <h3>Request</h3>
      <pre className="source sunken">
        {formatHttp(`${request.method} ${request.url}`, request.headers, request.body)}
      </pre>
    </div>
  );
}

/** Shows the condition and the remedy of the error with which the request was refused. */
function Explanation({
  response,
  document,
}: Pick<OutcomeProps, 'document'> & { readonly response: TestOutcome['response'] }) {
  const reason = response.headers.find(({ name }) => name.toLowerCase() === 'postrider-reason')?.value ?? null;
  const error = findPublicError(
    listPublicErrors(document, SEND_MAIL_PATH),
    response.status,
    readMessage(response.body),
    reason,
  );
  if (error === null) return null;
  return (
    <p className="outcome-reason">
      <code>{error.code}</code> <TextWithCode text={toSentence(error.condition)} />{' '}
      <TextWithCode text={toSentence(error.remedy)} />
    </p>
  );
}

function readMessage(body: string): string {
  try {
    const { message } = JSON.parse(body) as { readonly message?: unknown };
    return typeof message === 'string' ? message : '';
  } catch {
    return '';
  }
}

function formatHttp(firstLine: string, headers: TestOutcome['request']['headers'], body: string): string {
  return [firstLine, ...headers.map(({ name, value }) => `${name}: ${value}`), '', body].join('\n');
}
