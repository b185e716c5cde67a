/** The search for messages. */
import { Anchor, Button, Group, Text } from '@mantine/core';
import { useEffect, useEffectEvent, useMemo, useState } from 'react';
import { Link, useLocation, useSearchParams } from 'wouter';
import type { Session } from '../../../src/operator/schemas.ts';
import { ApiError } from '../api/client';
import { ChangeAllButton } from '../messages/change-all';
import { type Column, ColumnChooser, useColumns } from '../messages/columns';
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
  const text = parameters.toString();
  const filters = useMemo(() => parseFilters(new URLSearchParams(text)), [text]);
  const from = parameters.get('cursor') ?? '';

  const id = parseMessageId(filters.q ?? '');
  useEffect(() => {
    if (id !== null) navigate(`/messages/${id}`, { replace: true });
  }, [id, navigate]);

  const change = (newValues: FilterChange, typed: boolean) =>
    setParameters(
      (before) => {
        const newParameters = new URLSearchParams(before);
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
  const [columns, setColumns] = useColumns();
  // The search whose first rows are loaded. The matches of this search are counted afterwards.
  const [loadedSearch, setLoadedSearch] = useState<string | null>(null);

  return (
    <>
      <PageHead
        title="Messages"
        secondary={<MatchCount key={text} filters={filters} isEnabled={loadedSearch === text} />}
      >
        <Group gap="xs">
          <ChangeAllButton filters={filters} />
          <ColumnChooser columns={columns} onChange={setColumns} />
          <ExportButton filters={filters} />
          <TestMessageButton session={session} />
        </Group>
      </PageHead>
      <SearchForm filters={filters} onChange={change} onClear={clearFilters} />
      {id === null ? (
        <SearchResults
          key={text}
          session={session}
          filters={filters}
          from={from}
          columns={columns}
          onClear={clearFilters}
          onLoaded={() => setLoadedSearch(text)}
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
  readonly from: string;
  readonly columns: readonly Column[];
  readonly onClear: () => void;
  /** Called when the first rows are loaded. */
  readonly onLoaded: () => void;
}

function SearchResults({ session, filters, from, columns, onClear, onLoaded }: SearchResultsProps) {
  const search = useMessageSearch(filters, from);
  const { messages, phase, error, newMessages, showNew } = search;
  const [, navigate] = useLocation();
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const toggleSelection = (id: string) =>
    setSelected((before) => new Set(before.has(id) ? [...before].filter((other) => other !== id) : [...before, id]));
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
      {from === '' ? null : (
        <Text mb="sm" c="dimmed">
          This list starts at an older message.{' '}
          <Anchor component={Link} href={buildSearchUrl(filters)}>
            Start at the newest message
          </Anchor>
        </Text>
      )}
      <SelectionBar selected={selected} onClear={() => setSelected(new Set())} />
      <NewRowsButton
        count={messages.length > 0 ? newMessages.count : 0}
        hasMore={newMessages.hasMore}
        noun="message"
        onShow={showNew}
      />
      {messages.length > 0 ? (
        <div className="card flush">
          <Results
            messages={messages}
            columns={columns}
            currentId={currentId}
            selected={selected}
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

function NoResults({ session, filters, onClear }: Omit<SearchResultsProps, 'from' | 'columns' | 'onLoaded'>) {
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
  const text = new URLSearchParams(Object.entries(filters)).toString();
  return text === '' ? '/messages' : `/messages?${text}`;
}
