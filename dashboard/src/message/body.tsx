/** The body as the client submitted it. HTML is shown as source; only the inbox renders it, in a sandboxed frame. */
import { Anchor, Button, Group, Paper, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { MessageDetails } from '../../../src/operations/messages/schemas.ts';

/** The number of characters that are shown initially. A body may have a million characters. */
const MAX_INITIAL_CHARS = 20_000;

export function MessageBody({ message, inInbox }: { readonly message: MessageDetails; readonly inInbox: boolean }) {
  const [showAll, setShowAll] = useState(false);
  const { message: text } = message;
  return (
    <section aria-labelledby="body">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h4" id="body">
          Body
        </Title>
        {inInbox ? (
          <Anchor component={Link} href={`/inbox/${message.id}`}>
            Show in the inbox
          </Anchor>
        ) : null}
      </Group>
      {text === null ? (
        <Text c="dimmed">The body was erased (POSTRIDER_KEEP_BODY).</Text>
      ) : (
        <>
          <Text size="sm" c="dimmed" mb="xs">
            {isHtml(text) ? 'HTML, as source' : 'Text'}, {text.length.toLocaleString('en')} characters
          </Text>
          <Paper withBorder p="sm">
            <pre className="source">{showAll ? text : text.slice(0, MAX_INITIAL_CHARS)}</pre>
          </Paper>
          {showAll || text.length <= MAX_INITIAL_CHARS ? null : (
            <Button mt="xs" variant="default" onClick={() => setShowAll(true)}>
              Show all
            </Button>
          )}
        </>
      )}
    </section>
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
