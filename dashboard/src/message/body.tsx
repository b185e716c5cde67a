/** The body as the client submitted it. HTML is shown as source; only the inbox renders it, in a sandboxed frame. */
import { Button, Text } from '@mantine/core';
import { useState } from 'react';
import type { MessageDetails } from '../../../src/operations/messages/schemas.ts';
import { Card } from '../parts/card';

/** The number of characters that are shown initially. A body may have a million characters. */
const MAX_INITIAL_CHARS = 20_000;

export function MessageBody({ message, inInbox }: { readonly message: MessageDetails; readonly inInbox: boolean }) {
  const [showAll, setShowAll] = useState(false);
  const { message: text } = message;
  return (
    <Card
      title="Body"
      {...(text === null
        ? {}
        : {
            secondary: `${isHtml(text) ? 'HTML, as source' : 'Text'}, ${text.length.toLocaleString('en')} characters`,
          })}
      {...(inInbox ? { link: { href: `/inbox/${message.id}`, text: 'Show in the inbox' } } : {})}
    >
      {text === null ? (
        <Text c="dimmed">The body was erased (POSTRIDER_KEEP_BODY).</Text>
      ) : (
        <>
          <pre className="source sunken">{showAll ? text : text.slice(0, MAX_INITIAL_CHARS)}</pre>
          {showAll || text.length <= MAX_INITIAL_CHARS ? null : (
            <Button mt="xs" variant="default" onClick={() => setShowAll(true)}>
              Show all
            </Button>
          )}
        </>
      )}
    </Card>
  );
}

/**
 * Returns true if the body begins like HTML. The rule is that of the service: leading white space and letter case are
 * ignored.
 */
function isHtml(text: string): boolean {
  const start = text.trimStart().slice(0, 14).toLowerCase();
  return start.startsWith('<!doctype html') || start.startsWith('<html');
}
