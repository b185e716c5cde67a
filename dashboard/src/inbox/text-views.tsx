/**
 * The plain text, header fields and source of a captured message. All three contents are untrusted and are shown as
 * text.
 */
import { Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { CapturedMessage } from '../../../src/operations/inbox.ts';
import { getText, path } from '../api/client';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';

/** The maximum number of characters shown. Browsers render longer texts slowly. The download contains the full text. */
const MAX_SHOWN_CHARS = 200_000;

function TruncatedText({ text }: { readonly text: string }) {
  return (
    <>
      <pre className="source">{text.slice(0, MAX_SHOWN_CHARS)}</pre>
      {text.length > MAX_SHOWN_CHARS ? (
        <Text mt="sm" c="dimmed">
          The first {MAX_SHOWN_CHARS.toLocaleString('en')} of {text.length.toLocaleString('en')} characters. The
          download has the full text.
        </Text>
      ) : null}
    </>
  );
}

export function TextView({ text }: { readonly text: string | null }) {
  if (text === null) return <EmptyState title="This message has no plain text" />;
  return <TruncatedText text={text} />;
}

export function HeadersView({ headers }: Pick<CapturedMessage, 'headers'>) {
  // A message may have several header fields with one name, so the key includes the index.
  const rows = headers.map((header, index) => ({ ...header, key: `${index} ${header.name}` }));
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
  if (source.isError) return <ErrorAlert error={source.error} retry={() => source.refetch()} />;
  return <TruncatedText text={source.data} />;
}
