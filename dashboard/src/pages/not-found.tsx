/** The page for an unknown path. */
import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import { PageHead } from '../parts/page-head';
import { EmptyState } from '../parts/page-states';

export function NotFoundPage() {
  return (
    <>
      <PageHead title="Page not found" />
      <EmptyState title="No page has this address">
        <Anchor component={Link} href="/">
          Go to the overview
        </Anchor>
      </EmptyState>
    </>
  );
}
