/** The list of messages: a table with two lines per row, or cards on a narrow screen. Each row contains the reason. */
import { Anchor, Checkbox, Group, Paper, Stack, Table, Text, VisuallyHidden } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import type { MouseEvent } from 'react';
import { Link, useLocation } from 'wouter';
import { RelativeTime } from '../parts/relative-time';
import { COLUMN_LABELS, type Column } from './columns';
import { findReasonText, formatLabel } from './labels';
import { MessageState } from './message-state';
import type { ShownMessage } from './use-search';

const NARROW_SCREEN = '(max-width: 61.99em)';

interface ResultsProps {
  readonly messages: readonly ShownMessage[];
  readonly columns: readonly Column[];
  /** The id of the row to which the keyboard has moved, or null. */
  readonly current: string | null;
  readonly selected: ReadonlySet<string>;
  readonly onSelect: (id: string) => void;
}

export function Results(props: ResultsProps) {
  const isNarrow = useMediaQuery(NARROW_SCREEN, undefined, { getInitialValueInEffect: false });
  return isNarrow === true ? <Cards {...props} /> : <Rows {...props} />;
}

const WIDTHS: Readonly<Record<Column, string | undefined>> = {
  reason: undefined,
  from: '14%',
  account: '7rem',
  attempts: '5.5rem',
  accepted: '7rem',
  updated: '7rem',
};

function Rows({ messages, columns, current, selected, onSelect }: ResultsProps) {
  const [, navigate] = useLocation();
  const open = (event: MouseEvent, id: string) => {
    const target = event.target instanceof Element ? event.target : null;
    // A click on a control or a selection of text does not open the message.
    if (target?.closest('a, button, input, label') != null || String(window.getSelection()) !== '') return;
    navigate(`/messages/${id}`);
  };
  return (
    <Table highlightOnHover layout="fixed" verticalSpacing={6} horizontalSpacing={8} className="messages">
      <VisuallyHidden component="caption">Messages, newest first</VisuallyHidden>
      <Table.Thead>
        <Table.Tr>
          <Table.Th scope="col" w="2.25rem">
            <VisuallyHidden>Selection</VisuallyHidden>
          </Table.Th>
          <Table.Th scope="col" w="7.25rem">
            State
          </Table.Th>
          <Table.Th scope="col" w={columns.includes('reason') ? '26%' : undefined}>
            Recipient and subject
          </Table.Th>
          {columns.map((column) => (
            <Table.Th
              key={column}
              scope="col"
              w={WIDTHS[column]}
              {...(column === 'attempts' || column === 'updated' ? { ta: 'right' as const } : {})}
            >
              {COLUMN_LABELS[column]}
            </Table.Th>
          ))}
        </Table.Tr>
      </Table.Thead>
      <Table.Tbody>
        {messages.map((message) => (
          <Table.Tr
            key={message.id}
            data-row={message.id}
            tabIndex={-1}
            {...(current === message.id ? { 'aria-current': true, 'data-current': true } : {})}
            onClick={(event) => open(event, message.id)}
          >
            <Table.Td>
              <Selection message={message} selected={selected} onSelect={onSelect} />
            </Table.Td>
            <Table.Td>
              <MessageState message={message} />
            </Table.Td>
            <Table.Td>
              <Text inherit fw={550} truncate title={message.to}>
                {message.to}
              </Text>
              <Subject message={message} lines={1} />
            </Table.Td>
            {columns.map((column) => (
              <Cell key={column} column={column} message={message} />
            ))}
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

function Cell({ column, message }: { readonly column: Column; readonly message: ShownMessage }) {
  switch (column) {
    case 'reason':
      return (
        <Table.Td>
          <Reason message={message} />
        </Table.Td>
      );
    case 'from':
      return <OneLine text={message.from} />;
    case 'account':
      return <OneLine text={message.account ?? '–'} />;
    case 'attempts':
      return <Table.Td ta="right">{message.attempts}</Table.Td>;
    case 'accepted':
      return (
        <Table.Td className="nowrap">
          <RelativeTime at={message.at} />
        </Table.Td>
      );
    case 'updated':
      return (
        <Table.Td className="nowrap" ta="right">
          <RelativeTime at={message.updated} />
        </Table.Td>
      );
  }
}

/** The cause of the last failure, and the reply of the next hop. The reply is untrusted and shown literally. */
function Reason({ message }: { readonly message: ShownMessage }) {
  const text = findReasonText(message);
  const category = message.reason?.category ?? null;
  if (text === null && category === null) return <Text c="dimmed">–</Text>;
  return (
    <>
      {category === null ? null : (
        <Text inherit fw={500} truncate>
          {formatLabel(category)}
        </Text>
      )}
      {text === null ? null : (
        <Text
          fz={13}
          c="dimmed"
          title={text}
          {...(category === null ? { lineClamp: 2 } : { truncate: true })}
          className="wrap"
        >
          <bdi>{text}</bdi>
        </Text>
      )}
    </>
  );
}

function OneLine({ text }: { readonly text: string }) {
  return (
    <Table.Td>
      <Text inherit truncate title={text}>
        {text}
      </Text>
    </Table.Td>
  );
}

function Selection({
  message,
  selected,
  onSelect,
}: Pick<ResultsProps, 'selected' | 'onSelect'> & { message: ShownMessage }) {
  return (
    <Checkbox
      size="xs"
      aria-label={`Select the message to ${message.to}`}
      checked={selected.has(message.id)}
      onChange={() => onSelect(message.id)}
    />
  );
}

function Cards({ messages, selected, onSelect }: ResultsProps) {
  return (
    <Stack component="ul" gap="xs" className="plain" aria-label="Messages, newest first">
      {messages.map((message) => (
        <Paper component="li" key={message.id} withBorder p="sm">
          <Group justify="space-between" mb={4} wrap="nowrap">
            <Group gap="xs" wrap="nowrap">
              <Selection message={message} selected={selected} onSelect={onSelect} />
              <MessageState message={message} />
            </Group>
            <Text size="sm" c="dimmed">
              <RelativeTime at={message.updated} />
            </Text>
          </Group>
          <Text className="wrap" fw={500}>
            {message.to}
          </Text>
          <Subject message={message} lines={2} />
          <Reason message={message} />
          <Text size="sm" c="dimmed" className="wrap">
            from {message.from}
            {message.account === null ? '' : `, account ${message.account}`}
          </Text>
        </Paper>
      ))}
    </Stack>
  );
}

function Subject({ message, lines }: { readonly message: ShownMessage; readonly lines: number }) {
  const { id, subject } = message;
  return (
    <Anchor
      component={Link}
      href={`/messages/${id}`}
      className="wrap"
      lineClamp={lines}
      title={subject}
      inherit
      underline="hover"
    >
      {subject.trim() === '' ? '(blank subject)' : subject}
    </Anchor>
  );
}
