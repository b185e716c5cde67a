/** Overview. */
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function OverviewPage() {
  return (
    <>
      <PageHead title="Overview" />
      <Empty title="Nothing here yet" />
    </>
  );
}
