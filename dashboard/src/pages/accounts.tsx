/** Accounts. */
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function AccountsPage() {
  return (
    <>
      <PageHead title="Accounts" />
      <Empty title="Nothing here yet" />
    </>
  );
}
