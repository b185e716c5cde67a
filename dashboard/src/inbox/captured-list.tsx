/**
 * The list of captured messages, newest first, with two lines per row: recipient and subject. The service filters
 * the list by the search text. The keys `j` and `k` move through the list, and `Enter` opens the current row.
 */
import { Button } from '@mantine/core';
import { Link, useLocation, useSearch } from 'wouter';
import type { CapturedEntry } from '../../../src/operations/inbox.ts';
import { RelativeTime } from '../parts/relative-time';
import { useRowKeys } from '../parts/use-row-keys';

interface CapturedListProps {
  readonly messages: readonly CapturedEntry[];
  /** The id of the message that is shown. */
  readonly selectedId: string | undefined;
  /** Fetches the next page; null on the last page. */
  readonly loadMore: (() => void) | null;
  readonly isLoadingMore: boolean;
  /** True if the list contains only the messages that match a search. */
  readonly isSearch: boolean;
}

export function CapturedList({ messages, selectedId, loadMore, isLoadingMore, isSearch }: CapturedListProps) {
  // The links preserve the query parameters, so that the next message opens in the current view.
  const queryString = useSearch();
  const [, navigate] = useLocation();
  const getUrl = (id: string) => `/inbox/${id}${queryString === '' ? '' : `?${queryString}`}`;
  const currentId = useRowKeys({
    ids: messages.map(({ id }) => id),
    onOpen: (id) => navigate(getUrl(id)),
  });
  return (
    <nav className="card flush inbox-chooser" aria-label="Captured messages">
      {messages.length === 0 ? (
        <p className="inbox-none" role="status">
          {isSearch ? 'No message matches so far.' : 'No messages.'}
        </p>
      ) : (
        <ul className="inbox-list">
          {messages.map(({ id, at, to, subject }) => (
            <li key={id}>
              <Link
                href={getUrl(id)}
                data-row={id}
                {...(id === selectedId ? { 'aria-current': 'true' as const } : {})}
                {...(id === currentId ? { 'data-current': true } : {})}
              >
                <span className="inbox-row-head">
                  <b>{to}</b>
                  <span className="inbox-row-time">
                    <RelativeTime at={at} />
                  </span>
                </span>
                <span className="inbox-row-subject">{subject === '' ? '(no subject)' : subject}</span>
              </Link>
            </li>
          ))}
        </ul>
      )}
      {loadMore === null ? null : (
        <div className="inbox-more">
          <Button variant="default" size="compact-sm" onClick={loadMore} loading={isLoadingMore}>
            {isSearch ? 'Search older messages' : 'Show older messages'}
          </Button>
        </div>
      )}
    </nav>
  );
}
