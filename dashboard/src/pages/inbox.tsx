/** Inbox. */
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function InboxPage() {
  return (
    <>
      <PageHead title="Inbox" />
      <Empty title="Nothing here yet" />
    </>
  );
}
