/** Imports a CSV or JSON file into a suppression list. Shows the progress in bytes and rows, then the result. */
import { Button, Checkbox, FileInput, Group, Modal, NativeSelect, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { ImportResult as Result } from '../../../src/operations/suppressions.ts';
import { path } from '../api/client';
import { type Upload, type UploadStep, uploadFile } from '../api/upload';
import { Callout } from '../parts/callout';
import { ProgressBar } from '../parts/gauge';
import { formatCount, formatNumber } from '../parts/number';
import { ErrorAlert } from '../parts/page-states';
import { formatBytes } from './bytes';
import { ImportResult } from './import-result';
import { formatListOwner } from './list-owner';

type Phase =
  | { readonly kind: 'choosing'; readonly error: unknown }
  | { readonly kind: 'running'; readonly step: UploadStep }
  | { readonly kind: 'done'; readonly result: Result };

const REASON_OPTIONS = [
  { value: '', label: 'manual, or the reason from the export' },
  { value: 'manual', label: 'manual' },
  { value: 'bounce', label: 'bounce' },
  { value: 'complaint', label: 'complaint' },
  { value: 'unsubscribed', label: 'unsubscribed' },
];
/** The maximum file size that the service accepts. */
const MAX_FILE_BYTES = 200 * 1024 * 1024;

export function ImportDialog({ list, onClose }: { readonly list: string; readonly onClose: () => void }) {
  const queryClient = useQueryClient();
  const [file, setFile] = useState<File | null>(null);
  const [reason, setReason] = useState('');
  const [dryRun, setDryRun] = useState(false);
  const [phase, setPhase] = useState<Phase>({ kind: 'choosing', error: null });
  const currentUpload = useRef<Upload | null>(null);
  const isTooLarge = file !== null && file.size > MAX_FILE_BYTES;

  const startImport = async () => {
    if (file === null) return;
    setPhase({ kind: 'running', step: { kind: 'sending', sent: 0, size: file.size } });
    const reasonQuery = reason === '' ? '' : `&reason=${reason}`;
    const apiPath = `${path`/accounts/${list}/suppressions/import`}?dryRun=${dryRun}${reasonQuery}`;
    currentUpload.current = uploadFile(apiPath, file, (step) => setPhase({ kind: 'running', step }));
    try {
      setPhase({ kind: 'done', result: await currentUpload.current.result });
    } catch (error) {
      setPhase({ kind: 'choosing', error });
    }
    for (const topic of ['suppressions', 'audit']) void queryClient.invalidateQueries({ queryKey: [topic] });
  };
  const isRunning = phase.kind === 'running';
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Import into the suppression list of ${formatListOwner(list)}`}
      centered
      size="lg"
      closeOnEscape={!isRunning}
      closeOnClickOutside={!isRunning}
      withCloseButton={!isRunning}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {phase.kind === 'choosing' ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void startImport();
          }}
        >
          <Stack>
            <Text size="sm" c="dimmed">
              CSV or JSON, up to 200 MB: a plain list of addresses, a file that Export created, or an export of
              Postmark, SendGrid, Mailgun, Amazon SES, Brevo, Resend or Mailjet. If the file cannot be read, no address
              is added. Addresses that are already on the list do not change.
            </Text>
            <FileInput
              label="File"
              placeholder="Choose a file"
              accept=".csv,.json,text/csv,text/plain,application/json"
              value={file}
              onChange={setFile}
              clearable
              clearButtonProps={{ 'aria-label': 'Clear the file' }}
              {...(isTooLarge
                ? {
                    error: `The size of the file is ${formatBytes(file.size)}; the limit is 200 MB. Split the file, or use the command line.`,
                  }
                : {})}
            />
            <NativeSelect
              label="Reason for rows without a reason"
              data={REASON_OPTIONS}
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
            />
            <Checkbox
              label="Check the file only, and add no address"
              checked={dryRun}
              onChange={(event) => setDryRun(event.currentTarget.checked)}
            />
            {phase.error === null ? null : <ErrorAlert error={phase.error} />}
            <Group justify="flex-end">
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button type="submit" disabled={file === null || isTooLarge}>
                {dryRun ? 'Check' : 'Import'}
              </Button>
            </Group>
          </Stack>
        </form>
      ) : null}
      {phase.kind === 'running' ? (
        <ImportRunning step={phase.step} onAbort={() => currentUpload.current?.abort()} />
      ) : null}
      {phase.kind === 'done' ? <ImportResult list={list} result={phase.result} onClose={onClose} /> : null}
    </Modal>
  );
}

function ImportRunning({ step, onAbort }: { readonly step: UploadStep; readonly onAbort: () => void }) {
  if (step.kind === 'sending') {
    const { sent, size } = step;
    const sentFraction = size === 0 ? 0 : sent / size;
    return (
      <Stack>
        <Text fw={600}>
          Sent {formatBytes(sent)} of {formatBytes(size)}
        </Text>
        <ProgressBar fraction={sentFraction} label="Sent" text={`${formatBytes(sent)} of ${formatBytes(size)}`} />
        <Text role="status">
          {sentFraction >= 1 ? 'The upload is complete. The service reads the file.' : 'No address has been added yet.'}
        </Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onAbort}>
            Stop upload
          </Button>
        </Group>
      </Stack>
    );
  }
  const { read, added, known, skipped, bytes: at, total } = step.progress;
  return (
    <Stack>
      <Text fw={600}>
        Read {formatBytes(at)} of {formatBytes(total)}: {formatCount(read, 'row')}
      </Text>
      <ProgressBar
        fraction={total === 0 ? 1 : at / total}
        label="Read"
        text={`${formatBytes(at)} of ${formatBytes(total)}`}
      />
      <Text role="status">
        {formatNumber(added)} added, {formatNumber(known)} already on the list, {formatNumber(skipped)} skipped
      </Text>
      <Callout tone="neutral" title="The import continues without this page">
        The upload is complete. You can close this page. If the service stops during the import, import the file again:
        only the missing addresses are added.
      </Callout>
    </Stack>
  );
}
