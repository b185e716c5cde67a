/** Account. */
import { PageHead } from '../parts/page-head';
import { Empty } from '../parts/states';

export function AccountPage() {
  return (
    <>
      <PageHead title="Account" />
      <Empty title="Nothing here yet" />
    </>
  );
}
