/** Message. */
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function MessagePage() {
  return (
    <>
      <PageHead title="Message" />
      <Empty title="Nothing here yet" />
    </>
  );
}
