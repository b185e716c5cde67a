/** Imports a CSV file into a list: how far it is in bytes and rows, and in the end what became of every row. */
import { Button, FileInput, Group, Modal, NativeSelect, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import type { ImportResult as Result } from '../../../src/operations/suppressions/schemas.ts';
import { path } from '../api/client';
import { type Upload, type UploadStep, upload } from '../api/upload';
import { Bar } from '../parts/gauge';
import { Notice } from '../parts/notice';
import { counted, grouped } from '../parts/number';
import { Failure } from '../parts/states';
import { bytes } from './bytes';
import { ImportResult } from './import-result';
import { listName } from './list-name';

type Phase =
  | { readonly kind: 'choosing'; readonly error: unknown }
  | { readonly kind: 'running'; readonly step: UploadStep }
  | { readonly kind: 'done'; readonly result: Result };

const REASONS = ['manual', 'bounce', 'complaint'];
/** The service refuses more. */
const MOST_BYTES = 200 * 1024 * 1024;

export function ImportDialog({ list, onClose }: { readonly list: string; readonly onClose: () => void }) {
  const queries = useQueryClient();
  const [file, setFile] = useState<File | null>(null);
  const [reason, setReason] = useState('manual');
  const [phase, setPhase] = useState<Phase>({ kind: 'choosing', error: null });
  const running = useRef<Upload | null>(null);
  const tooLarge = file !== null && file.size > MOST_BYTES;

  const begin = async () => {
    if (file === null) return;
    setPhase({ kind: 'running', step: { kind: 'sending', sent: 0, size: file.size } });
    const at = `${path`/accounts/${list}/suppressions/import`}?reason=${reason}`;
    running.current = upload(at, file, (step) => setPhase({ kind: 'running', step }));
    try {
      setPhase({ kind: 'done', result: await running.current.result });
    } catch (error) {
      setPhase({ kind: 'choosing', error });
    }
    for (const topic of ['suppressions', 'audit']) void queries.invalidateQueries({ queryKey: [topic] });
  };
  const busy = phase.kind === 'running';
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Import into the list of ${listName(list)}`}
      centered
      size="lg"
      closeOnEscape={!busy}
      closeOnClickOutside={!busy}
      withCloseButton={!busy}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {phase.kind === 'choosing' ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            void begin();
          }}
        >
          <Stack>
            <Text size="sm" c="dimmed">
              CSV in UTF-8, up to 200 MB: a plain list of addresses, what Export writes, or what Postmark, SES and
              SendGrid export. The whole file is read first; one that is no CSV adds nothing. What is on the list
              already stays as it is.
            </Text>
            <FileInput
              label="CSV file"
              placeholder="Choose a file"
              accept=".csv,text/csv,text/plain"
              value={file}
              onChange={setFile}
              clearable
              clearButtonProps={{ 'aria-label': 'Choose no file' }}
              {...(tooLarge
                ? { error: `${bytes(file.size)}: more than 200 MB. Split it, or use the command line.` }
                : {})}
            />
            <NativeSelect
              label="Reason of rows that name none"
              data={REASONS}
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
            />
            {phase.error === null ? null : <Failure error={phase.error} />}
            <Group justify="flex-end">
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button type="submit" disabled={file === null || tooLarge}>
                Import
              </Button>
            </Group>
          </Stack>
        </form>
      ) : null}
      {phase.kind === 'running' ? <Running step={phase.step} onAbort={() => running.current?.abort()} /> : null}
      {phase.kind === 'done' ? <ImportResult list={list} result={phase.result} onClose={onClose} /> : null}
    </Modal>
  );
}

function Running({ step, onAbort }: { readonly step: UploadStep; readonly onAbort: () => void }) {
  if (step.kind === 'sending') {
    const { sent, size } = step;
    const part = size === 0 ? 0 : sent / size;
    return (
      <Stack>
        <Text fw={600}>
          Sent {bytes(sent)} of {bytes(size)}
        </Text>
        <Bar part={part} label="Sent" text={`${bytes(sent)} of ${bytes(size)}`} />
        <Text role="status">
          {part >= 1 ? 'All of it is sent; the service reads it to its end.' : 'Nothing is added yet.'}
        </Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onAbort}>
            Break it off
          </Button>
        </Group>
      </Stack>
    );
  }
  const { read, added, known, skipped, bytes: at, total } = step.progress;
  return (
    <Stack>
      <Text fw={600}>
        Read {bytes(at)} of {bytes(total)}: {counted(read, 'row')}
      </Text>
      <Bar part={total === 0 ? 1 : at / total} label="Read" text={`${bytes(at)} of ${bytes(total)}`} />
      <Text role="status">
        {grouped(added)} added, {grouped(known)} known before, {grouped(skipped)} skipped
      </Text>
      <Notice tone="quiet" title="It goes on by itself">
        The file has arrived. It is added to its end, also when this page is closed. A stop of the service breaks it
        off; import it again then, and the rest is added.
      </Notice>
    </Stack>
  );
}
