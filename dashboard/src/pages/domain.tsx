/** Domain. */
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function DomainPage() {
  return (
    <>
      <PageHead title="Domain" />
      <Empty title="Nothing here yet" />
    </>
  );
}
