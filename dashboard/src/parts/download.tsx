/**
 * Downloads a file. The page requests the file with the session header and saves the complete file. A download by the
 * browser itself would send no session header. A failure is shown as a notification.
 */
import { Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import { getBlob, type Query } from '../api/client';

interface DownloadProps {
  /** The path of the file in the operator API. */
  readonly apiPath: string;
  readonly query?: Query;
  /** The name under which the browser saves the file. */
  readonly name: string;
}

export function useDownload({ apiPath, query = {}, name }: DownloadProps) {
  return useMutation({
    mutationFn: async () => saveFile(await getBlob(apiPath, query), name),
    onError: ({ message }) =>
      notifications.show({ color: 'red', message, closeButtonProps: { 'aria-label': 'Close' } }),
  });
}

export function DownloadLink(file: DownloadProps) {
  const { mutate, isPending } = useDownload(file);
  return (
    <Button variant="default" size="xs" loading={isPending} onClick={() => mutate()}>
      Download
    </Button>
  );
}

export function DownloadButton({ label, ...file }: DownloadProps & { readonly label: string }) {
  const { mutate, isPending } = useDownload(file);
  return (
    <Button variant="default" loading={isPending} aria-label={label} onClick={() => mutate()}>
      Export
    </Button>
  );
}

/** Saves already loaded content to a file with the given name. */
export function saveFile(content: Blob, name: string): void {
  const anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(content);
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}
