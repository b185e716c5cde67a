/**
 * Downloads a file. A download by the browser sends no session header, so the page requests a ticket first. A failure is
 * shown as a notification. `saveFile` saves content that the page has loaded itself.
 */
import { Anchor, Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import { download } from '../api/session';

interface DownloadProps {
  /** The path of the operator API. */
  readonly apiPath: string;
  /** The name of the file. */
  readonly name: string;
}

function useDownload({ apiPath, name }: DownloadProps) {
  return useMutation({
    mutationFn: () => download(apiPath, name),
    onError: ({ message }) =>
      notifications.show({ color: 'red', message, closeButtonProps: { 'aria-label': 'Close' } }),
  });
}

export function DownloadLink(file: DownloadProps) {
  const { mutate } = useDownload(file);
  return (
    <Anchor component="button" type="button" size="sm" onClick={() => mutate()}>
      Download
    </Anchor>
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

/** Saves content that the page has loaded as a file. */
export function saveFile(content: Blob, name: string): void {
  const anchor = document.createElement('a');
  anchor.href = URL.createObjectURL(content);
  anchor.download = name;
  anchor.click();
  URL.revokeObjectURL(anchor.href);
}
