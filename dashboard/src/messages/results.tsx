/**
 * The list of messages with two lines per row. Each row contains the reason for the state. On a narrow screen a row is
 * a card.
 */
import { Checkbox } from '@mantine/core';
import { Link, useLocation } from 'wouter';
import { ListRow } from '../parts/list-row';
import { RelativeTime } from '../parts/relative-time';
import { COLUMN_LABELS, type Column } from './columns';
import { findReasonText, formatLabel } from './labels';
import { MessageState } from './message-state';
import type { ShownMessage } from './use-search';

interface ResultsProps {
  readonly messages: readonly ShownMessage[];
  readonly columns: readonly Column[];
  /** The id of the row that was chosen with the keyboard, or null. */
  readonly currentId: string | null;
  readonly selectedIds: ReadonlySet<string>;
  readonly onSelect: (id: string) => void;
}

/** The columns with right-aligned values. */
const RIGHT_ALIGNED_COLUMNS: readonly Column[] = ['attempts', 'accepted', 'updated'];

export function Results({ messages, columns, currentId: current, selectedIds, onSelect }: ResultsProps) {
  const [, navigate] = useLocation();
  return (
    <table className="list messages">
      <caption className="unseen">Messages, newest first</caption>
      <thead>
        <tr>
          <th scope="col" className="selection">
            <span className="unseen">Selection</span>
          </th>
          <th scope="col" className="state">
            State
          </th>
          <th scope="col" className={columns.includes('reason') ? 'recipient' : ''}>
            Recipient and subject
          </th>
          {columns.map((column) => (
            <th key={column} scope="col" className={`${column} ${RIGHT_ALIGNED_COLUMNS.includes(column) ? 'end' : ''}`}>
              {COLUMN_LABELS[column]}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {messages.map((message) => (
          <ListRow
            key={message.id}
            id={message.id}
            isCurrent={current === message.id}
            isSelected={selectedIds.has(message.id)}
            onOpen={() => navigate(`/messages/${message.id}`)}
          >
            <td>
              <Checkbox
                size="xs"
                aria-label={`Select the message to ${message.to}`}
                checked={selectedIds.has(message.id)}
                onChange={() => onSelect(message.id)}
              />
            </td>
            <td>
              <MessageState message={message} />
            </td>
            <td className="fill">
              <div className="two-lines cut">
                <b title={message.to}>{message.to}</b>
                <Link href={`/messages/${message.id}`} title={message.subject}>
                  {message.subject.trim() === '' ? '(blank subject)' : message.subject}
                </Link>
              </div>
            </td>
            {columns.map((column) => (
              <Cell key={column} column={column} message={message} />
            ))}
          </ListRow>
        ))}
      </tbody>
    </table>
  );
}

function Cell({ column, message }: { readonly column: Column; readonly message: ShownMessage }) {
  switch (column) {
    case 'reason':
      return (
        <td className="fill">
          <Reason message={message} />
        </td>
      );
    case 'from':
      return <OneLineCell label="From" text={message.from} />;
    case 'route':
      return <OneLineCell label="Route" text={message.route ?? '–'} />;
    case 'account':
      return <OneLineCell label="Account" text={message.account ?? '–'} />;
    case 'attempts':
      return (
        <td className="end" data-label="Attempts">
          {message.attempts}
        </td>
      );
    case 'accepted':
      return (
        <td className="end muted" data-label="Accepted">
          <RelativeTime at={message.at} />
        </td>
      );
    case 'updated':
      return (
        <td className="end muted updated">
          <RelativeTime at={message.updated} />
        </td>
      );
  }
}

/**
 * The category of the last failure, and below it the reply of the next hop or what the message waits for. The reply is
 * untrusted and shown literally.
 */
function Reason({ message }: { readonly message: ShownMessage }) {
  const text = findReasonText(message);
  const category = message.reason?.category ?? null;
  if (text === null && category === null) return <span className="muted">–</span>;
  return (
    <div className="reason">
      {category === null ? null : <span className="category">{formatLabel(category)}</span>}
      {text === null ? null : (
        <span className="reason-text" title={text}>
          <bdi>{text}</bdi>
        </span>
      )}
    </div>
  );
}

function OneLineCell({ label, text }: { readonly label: string; readonly text: string }) {
  return (
    <td className="muted one-line" data-label={label} title={text}>
      {text}
    </td>
  );
}
