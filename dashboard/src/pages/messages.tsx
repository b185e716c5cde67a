/** Messages: finds mail requests by anything that is known of them. */
import { Anchor, Button, Group, Text } from '@mantine/core';
import { useEffect, useMemo } from 'react';
import { Link, useLocation, useSearchParams } from 'wouter';
import type { Session } from '../../../src/operator/schemas.ts';
import { ApiError } from '../api/client';
import { described, type Filters, filtersOf, pastedId } from '../messages/filters';
import { Results } from '../messages/results';
import { type Changed, SearchForm } from '../messages/search-form';
import { type Search, useSearch } from '../messages/use-search';
import { FirstMail } from '../parts/first-mail';
import { PageHead } from '../parts/page-head';
import { Empty, Failure, Loading } from '../parts/states';
import { exact } from '../parts/when';
import type { PageProps } from './index';

export function MessagesPage({ session }: PageProps) {
  const [parameters, setParameters] = useSearchParams();
  const [, navigate] = useLocation();
  const text = parameters.toString();
  const filters = useMemo(() => filtersOf(new URLSearchParams(text)), [text]);
  const from = parameters.get('cursor') ?? '';

  const id = pastedId(filters.q ?? '');
  useEffect(() => {
    if (id !== null) navigate(`/messages/${id}`, { replace: true });
  }, [id, navigate]);

  const change = (changed: Changed, typed: boolean) =>
    setParameters(
      (before) => {
        const after = new URLSearchParams(before);
        // A page of one search is none of another.
        after.delete('cursor');
        for (const [name, value] of Object.entries(changed)) {
          if (value === undefined || value === '') after.delete(name);
          else after.set(name, value);
        }
        return after;
      },
      { replace: typed },
    );
  const clear = () => setParameters(new URLSearchParams());

  return (
    <>
      <PageHead title="Messages" />
      <SearchForm filters={filters} onChange={change} onClear={clear} />
      {id === null ? <Found key={text} session={session} filters={filters} from={from} onClear={clear} /> : <Loading />}
    </>
  );
}

interface FoundProps {
  readonly session: Session;
  readonly filters: Filters;
  readonly from: string;
  readonly onClear: () => void;
}

function Found({ session, filters, from, onClear }: FoundProps) {
  const search = useSearch(filters, from);
  const { messages, phase, error, fresh, showFresh } = search;
  if (phase === 'loading') return <Loading />;
  const refused = error instanceof ApiError && error.status >= 400 && error.status < 500;
  return (
    <>
      <div role="status">
        {fresh.count > 0 && messages.length > 0 ? (
          <Button fullWidth mb="sm" variant="default" onClick={showFresh}>
            {fresh.many ? `more than ${fresh.count}` : fresh.count} new: show
          </Button>
        ) : null}
      </div>
      {from === '' ? null : (
        <Text mb="sm" c="dimmed">
          Older mail, from the middle of a list.{' '}
          <Anchor component={Link} href={addressOf(filters)}>
            From the newest
          </Anchor>
        </Text>
      )}
      {messages.length > 0 ? <Results messages={messages} /> : null}
      {phase === 'failed' ? <Failure error={error} {...(refused ? {} : { retry: search.goOn })} /> : null}
      {phase === 'all' && messages.length === 0 ? (
        <Nothing session={session} filters={filters} onClear={onClear} />
      ) : null}
      <Progress search={search} />
    </>
  );
}

function Progress({ search: { phase, messages, searchedSince, goOn, stop } }: { readonly search: Search }) {
  const back = searchedSince === null ? '' : `, searched back to ${exact(searchedSince)}`;
  return (
    <Group justify="center" my="md" gap="sm">
      <Text c="dimmed" role="status">
        {phase === 'searching' ? `Searching: ${messages.length} found so far${back}` : null}
        {phase === 'stopped' ? `${messages.length} found${back}` : null}
        {phase === 'all' && messages.length > 0 ? `All ${messages.length} shown` : null}
      </Text>
      {phase === 'searching' ? (
        <Button variant="default" size="compact-sm" onClick={stop}>
          Stop
        </Button>
      ) : null}
      {phase === 'stopped' ? (
        <Button variant="default" onClick={goOn}>
          Search on
        </Button>
      ) : null}
      {phase === 'more' ? (
        <Button variant="default" onClick={goOn}>
          Load more
        </Button>
      ) : null}
    </Group>
  );
}

function Nothing({ session, filters, onClear }: Omit<FoundProps, 'from'>) {
  const words = described(filters);
  if (words.length === 0) {
    return (
      <>
        <Empty title="No mail has been accepted yet">It shows here as soon as it is.</Empty>
        <FirstMail session={session} />
      </>
    );
  }
  return (
    <Empty title="Nothing matches">
      There is no mail request {words.join(', ')}.
      <br />
      <Button mt="md" variant="default" onClick={onClear}>
        Search everything
      </Button>
    </Empty>
  );
}

function addressOf(filters: Filters): string {
  const text = new URLSearchParams(Object.entries(filters)).toString();
  return text === '' ? '/messages' : `/messages?${text}`;
}
