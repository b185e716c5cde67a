/** Audit. */
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function AuditPage() {
  return (
    <>
      <PageHead title="Audit" />
      <Empty title="Nothing here yet" />
    </>
  );
}
