/** The body as the client gave it. HTML is shown as its source: as mail it is seen in the inbox alone, in a frame of its own. */
import { Anchor, Button, Group, Paper, Text, Title } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { MessageDetails } from '../../../src/operations/messages/schemas.ts';

/** More is drawn only when it is asked for: a body may have a million characters. */
const AT_FIRST = 20_000;

export function Body({ message, inInbox }: { readonly message: MessageDetails; readonly inInbox: boolean }) {
  const [whole, setWhole] = useState(false);
  const { message: text } = message;
  return (
    <section aria-labelledby="body">
      <Group justify="space-between" mb="xs">
        <Title order={2} size="h4" id="body">
          Body
        </Title>
        {inInbox ? (
          <Anchor component={Link} href={`/inbox/${message.id}`}>
            See it as the recipient would
          </Anchor>
        ) : null}
      </Group>
      {text === null ? (
        <Text c="dimmed">It has been erased (POSTRIDER_KEEP_BODY).</Text>
      ) : (
        <>
          <Text size="sm" c="dimmed" mb="xs">
            {isHtml(text) ? 'HTML, as source' : 'Text'}, {text.length.toLocaleString('en')} characters
          </Text>
          <Paper withBorder p="sm">
            <pre className="source">{whole ? text : text.slice(0, AT_FIRST)}</pre>
          </Paper>
          {whole || text.length <= AT_FIRST ? null : (
            <Button mt="xs" variant="default" onClick={() => setWhole(true)}>
              Show all of it
            </Button>
          )}
        </>
      )}
    </section>
  );
}

/** As the service decides it: by the beginning, white space skipped, in any case. */
function isHtml(text: string): boolean {
  const start = text.trimStart().slice(0, 14).toLowerCase();
  return start.startsWith('<!doctype html') || start.startsWith('<html');
}
