/** Domains. */
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function DomainsPage() {
  return (
    <>
      <PageHead title="Domains" />
      <Empty title="Nothing here yet" />
    </>
  );
}
