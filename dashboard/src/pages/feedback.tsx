/** The list of feedback reports that were not understood, newest first. */
import { Anchor, Button, Group, Table, Text } from '@mantine/core';
import { Link } from 'wouter';
import type { ReportSummary } from '../../../src/operations/feedback/schemas.ts';
import { path } from '../api/client';
import { useUrlState } from '../api/url-state';
import { REPORT_PAGE_SIZE, useReports } from '../feedback/queries';
import { PageHead } from '../parts/page-head';
import { EmptyState, ErrorAlert, Loading } from '../parts/page-states';
import { RelativeTime } from '../parts/relative-time';
import { toPrintableText } from '../parts/untrusted-text';

export function FeedbackPage() {
  const [urlState, setUrlState] = useUrlState();
  const before = urlState.get('before') ?? '';
  const page = useReports(before);
  const reports = (page.data ?? []).slice(0, REPORT_PAGE_SIZE);
  const older = (page.data?.length ?? 0) > REPORT_PAGE_SIZE ? reports.at(-1) : undefined;
  return (
    <>
      <PageHead title="Feedback" />
      <Text size="sm" c="dimmed" mb="md">
        Bounces, complaints and provider events that were not understood, or that name no known message. They change no
        message and suppress no recipient.
      </Text>
      {page.isPending ? <Loading /> : null}
      {page.isError ? <ErrorAlert error={page.error} retry={page.refetch} /> : null}
      {page.isSuccess && reports.length === 0 ? (
        <EmptyState title={before === '' ? 'Every report was understood' : 'No older reports'}>
          A report that cannot be read appears here with its text, so that you can decide what it means.
        </EmptyState>
      ) : null}
      {reports.length === 0 ? null : (
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Report</Table.Th>
              <Table.Th scope="col">Reason</Table.Th>
              <Table.Th scope="col" visibleFrom="sm">
                Source
              </Table.Th>
              <Table.Th scope="col" visibleFrom="xs">
                Received
              </Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {reports.map((report) => (
              <ReportRow key={report.id} report={report} />
            ))}
          </Table.Tbody>
        </Table>
      )}
      <Group justify="space-between" my="md">
        {before === '' ? (
          <span />
        ) : (
          <Button variant="default" onClick={() => setUrlState({ before: null })}>
            Newest
          </Button>
        )}
        {older === undefined ? null : (
          <Button
            variant="default"
            loading={page.isPlaceholderData}
            onClick={() => setUrlState({ before: String(older.id) })}
          >
            Older
          </Button>
        )}
      </Group>
    </>
  );
}

function ReportRow({ report: { id, at, source, message, reason, summary } }: { readonly report: ReportSummary }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Anchor inherit component={Link} href={path`/feedback/${id}`} className="wrap">
          {summary.trim() === '' ? `Report ${id}` : toPrintableText(summary)}
        </Anchor>
        {message === null ? null : (
          <Text size="sm">
            <Anchor inherit component={Link} href={path`/messages/${message}`} className="wrap">
              message {message}
            </Anchor>
          </Text>
        )}
        <Text size="sm" c="dimmed" hiddenFrom="sm">
          {source}, <RelativeTime at={at} />
        </Text>
      </Table.Td>
      <Table.Td className="wrap">{toPrintableText(reason)}</Table.Td>
      <Table.Td visibleFrom="sm">{source}</Table.Td>
      <Table.Td visibleFrom="xs">
        <RelativeTime at={at} />
      </Table.Td>
    </Table.Tr>
  );
}
