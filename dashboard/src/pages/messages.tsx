/** Messages. */
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function MessagesPage() {
  return (
    <>
      <PageHead title="Messages" />
      <Empty title="Nothing here yet" />
    </>
  );
}
