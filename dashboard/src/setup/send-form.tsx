/** Sends a test message through the public listener of the node, to a simulator address or to an address of the operator. */
import { Button, TextInput } from '@mantine/core';
import { useState } from 'react';
import { getFirstRecipient } from '../../../src/model/outcome';
import type { TestOutcome } from '../../../src/operations/message-test.ts';
import { post } from '../api/client';
import { useApiMutation } from '../api/mutation';
import { findFieldError } from '../parts/field-error';
import { ErrorAlert } from '../parts/page-states';

interface SendFormProps {
  readonly transport: string;
  readonly account: string;
  readonly sender: string;
  /** Called with the id of an accepted test message. */
  readonly onAccepted: (id: string) => void;
}

export function SendForm({ transport, account, sender, onAccepted }: SendFormProps) {
  const [to, setTo] = useState(() => getFirstRecipient(transport));
  const send = useApiMutation(
    () => post<TestOutcome>('/messages/test', { account, to, from: sender, subject: 'Hello', message: 'It works.' }),
    ['messages', 'overview', 'inbox'],
  );
  const refusal = send.data === undefined || send.data.id !== null ? null : describeRefusal(send.data);
  const fieldError = findFieldError(send.error, 'to');
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send.mutate(undefined, {
          onSuccess: ({ id }) => {
            if (id !== null) onAccepted(id);
          },
        });
      }}
    >
      <div className="test-message-form">
        <TextInput
          label="Recipient"
          value={to}
          onChange={(event) => setTo(event.currentTarget.value)}
          autoComplete="off"
          spellCheck={false}
          error={fieldError}
        />
        <Button type="submit" loading={send.isPending} disabled={to.trim() === ''}>
          Send test message
        </Button>
      </div>
      <div role="status">
        {refusal === null ? null : <ErrorAlert error={new Error(refusal)} />}
        {send.isError && fieldError === null ? <ErrorAlert error={send.error} /> : null}
      </div>
    </form>
  );
}

/**
 * Returns the response as a client receives it, such as `403: Invalid tokens or rate limit exceeded
 * (volume-exhausted)`.
 */
function describeRefusal({ response: { status, body, headers } }: TestOutcome): string {
  const reason = headers.find(({ name }) => name.toLowerCase() === 'postrider-reason')?.value;
  return `The service refused the message with ${status}: ${readMessage(body)}${reason === undefined ? '' : ` (${reason})`}`;
}

function readMessage(body: string): string {
  try {
    const { message } = JSON.parse(body) as { readonly message?: unknown };
    return typeof message === 'string' ? message : body;
  } catch {
    return body;
  }
}
