/** Suppressions. */
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function SuppressionsPage() {
  return (
    <>
      <PageHead title="Suppressions" />
      <Empty title="Nothing here yet" />
    </>
  );
}
