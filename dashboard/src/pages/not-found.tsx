/** An address that no page has. */
import { Anchor } from '@mantine/core';
import { Link } from 'wouter';
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function NotFoundPage() {
  return (
    <>
      <PageHead title="No such page" />
      <Empty title="Nothing is at this address">
        <Anchor component={Link} href="/">
          Go to the overview
        </Anchor>
      </Empty>
    </>
  );
}
