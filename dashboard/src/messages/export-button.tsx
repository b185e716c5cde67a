/** Downloads a CSV file of the messages that match the filters. */
import { Button } from '@mantine/core';
import { useDownload } from '../parts/download';
import type { Filters } from './filters';

export function ExportButton({ filters }: { readonly filters: Filters }) {
  const { mutate, isPending } = useDownload({ apiPath: '/messages/export', query: filters, name: 'messages.csv' });
  return (
    <Button variant="default" loading={isPending} onClick={() => mutate()}>
      Export CSV
    </Button>
  );
}
