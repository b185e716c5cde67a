/** The page Messages: searches messages and shows them in a list. */
import { Anchor, Button, Group, Text } from '@mantine/core';
import { useEffect, useEffectEvent, useMemo, useState } from 'react';
import { Link, useLocation, useSearchParams } from 'wouter';
import type { Session } from '../../../src/operator/schemas.ts';
import { ApiError } from '../api/client';
import { ChangeAllButton } from '../messages/change-all';
import { type Column, ColumnChooser, listAvailableColumns, useColumns } from '../messages/columns';
import { ExportButton } from '../messages/export-button';
import { describeFilters, type Filters, parseFilters, parseMessageId } from '../messages/filters';
import { MatchCount } from '../messages/match-count';
import { Results } from '../messages/results';
import { type FilterChange, SearchForm } from '../messages/search-form';
import { SelectionBar } from '../messages/selection-bar';
import { type MessageSearch, useMessageSearch } from '../messages/use-search';
import { Card } from '../parts/card';
import { NewRowsButton } from '../parts/new-rows-button';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { formatTime } from '../parts/time';
import { useRowKeys } from '../parts/use-row-keys';
import { TestMessage } from '../setup/test-message';
import { TestMessageButton } from '../setup/test-message-button';
import type { PageProps } from './index';

export function MessagesPage({ session }: PageProps) {
  const [parameters, setParameters] = useSearchParams();
  const [, navigate] = useLocation();
  const queryText = parameters.toString();
  const filters = useMemo(() => parseFilters(new URLSearchParams(queryText)), [queryText]);
  const firstCursor = parameters.get('cursor') ?? '';

  const id = parseMessageId(filters.q ?? '');
  useEffect(() => {
    if (id !== null) navigate(`/messages/${id}`, { replace: true });
  }, [id, navigate]);

  const changeFilters = (newValues: FilterChange, typed: boolean) =>
    setParameters(
      (previousParameters) => {
        const newParameters = new URLSearchParams(previousParameters);
        // The cursor is removed, because it belongs to the previous search.
        newParameters.delete('cursor');
        for (const [name, value] of Object.entries(newValues)) {
          if (value === undefined || value === '') newParameters.delete(name);
          else newParameters.set(name, value);
        }
        return newParameters;
      },
      { replace: typed },
    );
  const clearFilters = () => setParameters(new URLSearchParams());
  const availableColumns = listAvailableColumns(session.routes);
  const [columns, setColumns] = useColumns(availableColumns);
  // The query of the search whose first rows are loaded. The matches are counted after these rows are loaded.
  const [loadedSearch, setLoadedSearch] = useState<string | null>(null);

  return (
    <>
      <PageHead
        title="Messages"
        secondary={<MatchCount key={queryText} filters={filters} isEnabled={loadedSearch === queryText} />}
      >
        <Group gap="xs">
          <ChangeAllButton filters={filters} />
          <ColumnChooser available={availableColumns} columns={columns} onChange={setColumns} />
          <ExportButton filters={filters} />
          <TestMessageButton session={session} />
        </Group>
      </PageHead>
      <SearchForm filters={filters} routes={session.routes} onChange={changeFilters} onClear={clearFilters} />
      {id === null ? (
        <SearchResults
          key={queryText}
          session={session}
          filters={filters}
          firstCursor={firstCursor}
          columns={columns}
          onClear={clearFilters}
          onLoaded={() => setLoadedSearch(queryText)}
        />
      ) : (
        <Loading />
      )}
    </>
  );
}

interface SearchResultsProps {
  readonly session: Session;
  readonly filters: Filters;
  readonly firstCursor: string;
  readonly columns: readonly Column[];
  readonly onClear: () => void;
  /** Called when the first rows are loaded. */
  readonly onLoaded: () => void;
}

function SearchResults({ session, filters, firstCursor, columns, onClear, onLoaded }: SearchResultsProps) {
  const search = useMessageSearch(filters, firstCursor);
  const { messages, phase, error, newMessages, showNewMessages } = search;
  const [, navigate] = useLocation();
  const [selectedIds, setSelectedIds] = useState<ReadonlySet<string>>(new Set());
  const toggleSelection = (id: string) =>
    setSelectedIds((ids) => new Set(ids.has(id) ? [...ids].filter((otherId) => otherId !== id) : [...ids, id]));
  const currentId = useRowKeys({
    ids: messages.map(({ id }) => id),
    onOpen: (id) => navigate(`/messages/${id}`),
    onSelect: toggleSelection,
  });
  const isLoaded = phase !== 'loading' && phase !== 'failed';
  const reportLoaded = useEffectEvent(onLoaded);
  useEffect(() => {
    if (isLoaded) reportLoaded();
  }, [isLoaded]);
  if (phase === 'loading') return <Loading />;
  const isRefused = error instanceof ApiError && error.status >= 400 && error.status < 500;
  return (
    <>
      {firstCursor === '' ? null : (
        <Text mb="sm" c="dimmed">
          This list starts at an older message.{' '}
          <Anchor component={Link} href={buildSearchUrl(filters)}>
            Start at the newest message
          </Anchor>
        </Text>
      )}
      <SelectionBar selectedIds={selectedIds} onClear={() => setSelectedIds(new Set())} />
      <NewRowsButton
        count={messages.length > 0 ? newMessages.count : 0}
        hasMore={newMessages.hasMore}
        noun="message"
        onShow={showNewMessages}
      />
      {messages.length > 0 ? (
        <div className="card flush">
          <Results
            messages={messages}
            columns={columns}
            currentId={currentId}
            selectedIds={selectedIds}
            onSelect={toggleSelection}
          />
          <SearchProgress search={search} />
        </div>
      ) : null}
      {phase === 'failed' ? <ErrorAlert error={error} {...(isRefused ? {} : { retry: search.resume })} /> : null}
      {phase === 'all' && messages.length === 0 ? (
        <NoResults session={session} filters={filters} onClear={onClear} />
      ) : null}
      {messages.length === 0 ? <SearchProgress search={search} /> : null}
    </>
  );
}

function SearchProgress({
  search: { phase, messages, searchedSince, resume, stop },
}: {
  readonly search: MessageSearch;
}) {
  const searchedBackText = searchedSince === null ? '' : `, searched back to ${formatTime(searchedSince)}`;
  return (
    <div className={messages.length > 0 ? 'list-foot' : 'search-progress'}>
      <span role="status">
        {phase === 'searching' ? `Searching: ${messages.length} found so far${searchedBackText}` : null}
        {phase === 'stopped' ? `${messages.length} found${searchedBackText}` : null}
        {phase === 'all' && messages.length > 0 ? `All ${messages.length} shown` : null}
        {phase === 'more' ? 'Newest first · rows stay in place while you read' : null}
      </span>
      {phase === 'searching' ? (
        <Button variant="default" size="xs" onClick={stop}>
          Stop
        </Button>
      ) : null}
      {phase === 'stopped' ? (
        <Button variant="default" size="xs" onClick={resume}>
          Continue search
        </Button>
      ) : null}
      {phase === 'more' ? (
        <Button variant="default" size="xs" onClick={resume}>
          Load more
        </Button>
      ) : null}
    </div>
  );
}

function NoResults({ session, filters, onClear }: Omit<SearchResultsProps, 'firstCursor' | 'columns' | 'onLoaded'>) {
  const descriptions = describeFilters(filters);
  if (descriptions.length === 0) {
    return (
      <div className="stack">
        <EmptyState title="No messages">The first message appears here when it is accepted.</EmptyState>
        <Card title="Send a test message">
          <TestMessage session={session} isFirst />
        </Card>
      </div>
    );
  }
  return (
    <EmptyState title="No message matches">
      There is no message {descriptions.join(', ')}.
      <br />
      <Button mt="md" variant="default" onClick={onClear}>
        Show all messages
      </Button>
    </EmptyState>
  );
}

function buildSearchUrl(filters: Filters): string {
  const queryText = new URLSearchParams(Object.entries(filters)).toString();
  return queryText === '' ? '/messages' : `/messages?${queryText}`;
}
