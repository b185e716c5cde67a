/** Shows why the object of a page cannot be loaded: a link to the list for a 404, otherwise the error. */
import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import { ApiError } from '../api/client';
import { EmptyState, ErrorAlert } from './page-states';

interface LoadErrorProps {
  readonly error: unknown;
  readonly retry: () => unknown;
  /** The title, such as `No account has this name`. */
  readonly title: string;
  readonly href: string;
  readonly link: string;
}

export function LoadError({ error, retry, title, href, link }: LoadErrorProps) {
  if (!(error instanceof ApiError) || error.status !== 404) return <ErrorAlert error={error} retry={retry} />;
  return (
    <EmptyState title={title}>
      <Anchor component={Link} href={href}>
        {link}
      </Anchor>
    </EmptyState>
  );
}
