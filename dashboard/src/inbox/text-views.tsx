/** What a mail says in letters: its plain text, its header fields, its source. All of it is a stranger's, and shown as text. */
import { Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { CapturedMessage } from '../../../src/operations/inbox/schemas.ts';
import { getText, path } from '../api/client';
import { Empty, Failure, Loading } from '../parts/states';

/** Browsers are slow to lay out more than this; the rest is in the download. */
const SHOWN = 200_000;

function Letters({ text }: { readonly text: string }) {
  return (
    <>
      <pre className="source">{text.slice(0, SHOWN)}</pre>
      {text.length > SHOWN ? (
        <Text mt="sm" c="dimmed">
          The first {SHOWN.toLocaleString('en')} of {text.length.toLocaleString('en')} characters. All of them are in
          the download.
        </Text>
      ) : null}
    </>
  );
}

export function TextView({ text }: { readonly text: string | null }) {
  if (text === null) return <Empty title="This mail has no plain text" />;
  return <Letters text={text} />;
}

export function HeadersView({ headers }: Pick<CapturedMessage, 'headers'>) {
  // The same name may come twice: only the order tells them apart.
  const rows = headers.map((header, at) => ({ ...header, key: `${at} ${header.name}` }));
  return (
    <Table className="inbox-headers" captionSide="top">
      <Table.Tbody>
        {rows.map(({ key, name, value }) => (
          <Table.Tr key={key}>
            <Table.Th scope="row">{name}</Table.Th>
            <Table.Td className="wrap">{value}</Table.Td>
          </Table.Tr>
        ))}
      </Table.Tbody>
    </Table>
  );
}

export function SourceView({ id }: { readonly id: string }) {
  const source = useQuery({
    queryKey: ['captured', id, 'source'],
    queryFn: () => getText(path`/inbox/${id}/source`),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (source.isPending) return <Loading />;
  if (source.isError) return <Failure error={source.error} retry={() => source.refetch()} />;
  return <Letters text={source.data} />;
}
