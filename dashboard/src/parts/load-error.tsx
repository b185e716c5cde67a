/**
 * Shows why the object of a page cannot be loaded. For the status 404, shows that the object does not exist, and a link
 * to the list. For any other error, shows the error.
 */
import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import { ApiError } from '../api/client';
import { EmptyState, ErrorAlert } from './page-states';

interface LoadErrorProps {
  readonly error: unknown;
  readonly retry: () => unknown;
  /** The title for the status 404, such as `No account has this name`. */
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
