/** What saves a file: asks for a ticket first, since a download carries no header. Says where that fails. */
import { Anchor, Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation } from '@tanstack/react-query';
import { download } from '../api/session';

interface DownloadProps {
  /** Of the operator API. */
  readonly at: string;
  /** Of the file. */
  readonly name: string;
}

function useDownload({ at, name }: DownloadProps) {
  return useMutation({
    mutationFn: () => download(at, name),
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
