"""Models of images, from torchvision, timm and transformers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import timm.models
import torch
import torch.nn.functional as F
import transformers as tf
from torch import Tensor, nn
from torchvision import models

from .table import Entry, own_loss


def pictures(samples: int, size: int = 64) -> dict[str, Tensor]:
    return {"x": torch.randn(samples, 3, size, size), "y": torch.randint(0, 3, (samples,))}


def classes(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    return F.cross_entropy(model(batch["x"]), batch["y"])


def maps(samples: int) -> dict[str, Tensor]:
    return {"x": torch.randn(samples, 3, 64, 64), "y": torch.randint(0, 3, (samples, 64, 64))}


def map_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    return F.cross_entropy(model(batch["x"])["out"], batch["y"])


def mixed(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        loss = F.cross_entropy(model(batch["x"]), batch["y"])
    return loss


def vision(name: str, **options: Any) -> Callable[[float], Any]:
    return lambda dropout: getattr(models, name)(num_classes=3, **options)


def bottlenecks(dropout: float) -> Any:
    return models.ResNet(models.resnet.Bottleneck, [1, 1, 1, 1], num_classes=3, width_per_group=16)


def fcn(dropout: float) -> Any:
    from torchvision.models._utils import IntermediateLayerGetter
    from torchvision.models.segmentation.fcn import FCN, FCNHead

    backbone = models.ResNet(models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=3)
    model: nn.Module = FCN(IntermediateLayerGetter(backbone, {"layer4": "out"}), FCNHead(512, 3))
    return with_dropout(model, dropout)


def with_dropout(model: nn.Module, dropout: float) -> Any:
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = dropout
    return model


def segmented(name: str) -> Callable[[float], Any]:
    made = getattr(models.segmentation, name)
    return lambda dropout: with_dropout(made(weights=None, weights_backbone=None, num_classes=3), dropout)


def swin(dropout: float) -> Any:
    return models.SwinTransformer(
        [4, 4], 8, [2, 2], [2, 2], [4, 4], dropout=dropout, stochastic_depth_prob=0.2 * bool(dropout), num_classes=3
    )


def vit(dropout: float) -> Any:
    return models.VisionTransformer(64, 16, 2, 2, 16, 24, dropout=dropout, attention_dropout=dropout, num_classes=3)


def efficientnet(dropout: float) -> Any:
    from torchvision.models.efficientnet import EfficientNet, MBConvConfig

    blocks = [MBConvConfig(2, 3, 2, 8, 8, 2), MBConvConfig(2, 3, 2, 8, 16, 2)]
    return EfficientNet(blocks, dropout, 2 * dropout, num_classes=3, last_channel=32)


def convnext(dropout: float) -> Any:
    from torchvision.models.convnext import CNBlockConfig

    return models.ConvNeXt(
        [CNBlockConfig(8, 16, 2), CNBlockConfig(16, None, 2)], stochastic_depth_prob=2 * dropout, num_classes=3
    )


def scenes(samples: int) -> dict[str, Any]:
    images, targets = [], []
    for _ in range(samples):
        images.append(torch.rand(3, int(torch.randint(40, 64, ())), 48))
        corner = torch.rand(2, 2) * 16
        boxes = torch.cat([corner, corner + 8 + torch.rand(2, 2) * 16], 1)
        masks = (torch.rand(2, images[-1].size(1), 48) > 0.5).to(torch.uint8)
        targets.append({"boxes": boxes, "labels": torch.randint(1, 3, (2,)), "masks": masks})
    return {"images": images, "targets": targets}


def detection_loss(model: nn.Module, batch: dict[str, Any]) -> Tensor:
    return sum(model(batch["images"], batch["targets"]).values())  # type: ignore[no-any-return]


def detector(name: str, **options: Any) -> Callable[[float], Any]:
    small: dict[str, Any] = dict(weights=None, weights_backbone=None, num_classes=3)
    return lambda dropout: getattr(models.detection, name)(**small, **options)


def ssdlite(dropout: float) -> Any:
    """That of torchvision, which is made for images of 320 x 320, for smaller ones."""
    model = detector("ssdlite320_mobilenet_v3_large")(dropout)
    model.transform.fixed_size = (96, 96)
    return model


def mask_rcnn(dropout: float) -> Any:
    """That of torchvision, with a smaller backbone."""
    from torchvision.models.detection.anchor_utils import AnchorGenerator
    from torchvision.models.detection.backbone_utils import mobilenet_backbone

    backbone = mobilenet_backbone("mobilenet_v3_small", weights=None, fpn=True, trainable_layers=6)
    anchors = AnchorGenerator(((16, 32),) * 3, ((0.5, 1.0, 2.0),) * 3)
    return models.detection.MaskRCNN(backbone, 3, rpn_anchor_generator=anchors, **SIZES, **FEW)


SIZES: dict[str, Any] = dict(min_size=64, max_size=64)
FEW: dict[str, Any] = dict(
    rpn_pre_nms_top_n_train=30, rpn_post_nms_top_n_train=10, rpn_batch_size_per_image=16, box_batch_size_per_image=8
)


def image_model(name: str, **options: Any) -> Callable[[float], Any]:
    return lambda dropout: timm.create_model(name, num_classes=3, **options)


def dropped(name: str, **options: Any) -> Callable[[float], Any]:
    return lambda dropout: timm.create_model(
        name, num_classes=3, drop_rate=dropout, drop_path_rate=2 * dropout, **options
    )


def mixer(dropout: float) -> Any:
    return timm.models.mlp_mixer.MlpMixer(
        3, 64, patch_size=16, num_blocks=2, embed_dim=16, drop_rate=dropout, drop_path_rate=dropout
    )


def timm_resnet(dropout: float) -> Any:
    from timm.models.resnet import BasicBlock, ResNet

    return ResNet(
        BasicBlock, (1, 1, 1, 1), num_classes=3, channels=(8, 8, 16, 16), drop_rate=dropout, drop_path_rate=2 * dropout
    )


def timm_efficientnet(dropout: float) -> Any:
    from timm.models._efficientnet_builder import decode_arch_def
    from timm.models.efficientnet import EfficientNet

    blocks = decode_arch_def(
        [["ds_r1_k3_s1_e1_c8_se0.25"], ["ir_r2_k3_s2_e2_c8_se0.25"], ["ir_r2_k5_s2_e2_c16_se0.25"]]
    )
    return EfficientNet(
        blocks,
        num_classes=3,
        num_features=32,
        stem_size=8,
        norm_layer=timm.layers.BatchNormAct2d,
        drop_rate=dropout,
        drop_path_rate=2 * dropout,
    )


def labelled(samples: int) -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(samples, 3, 32, 32), "labels": torch.randint(0, 3, (samples,))}


def painted(samples: int) -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(samples, 3, 64, 64), "labels": torch.randint(0, 3, (samples, 64, 64))}


PATCHES = dict(
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=24,
    image_size=32,
    patch_size=8,
    num_labels=3,
)


def patches(kind: str, config: str, *rates: str) -> Callable[[float], Any]:
    def build(dropout: float) -> Any:
        settings = dict(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout)
        settings |= dict.fromkeys(rates, dropout)
        return getattr(tf, kind)(getattr(tf, config)(**(PATCHES | settings)))

    return build


def dinov2(dropout: float) -> Any:
    settings = dict(hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, drop_path_rate=2 * dropout)
    return tf.Dinov2ForImageClassification(tf.Dinov2Config(**(PATCHES | settings), mlp_ratio=2))


def hf_resnet(dropout: float) -> Any:
    return tf.ResNetForImageClassification(
        tf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=3)
    )


def mobilevit(dropout: float) -> Any:
    config = tf.MobileViTConfig(
        image_size=64,
        hidden_sizes=[16, 16, 16],
        neck_hidden_sizes=[8, 8, 8, 8, 16, 16, 16],
        num_attention_heads=2,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        classifier_dropout_prob=dropout,
        num_labels=3,
    )
    return tf.MobileViTForImageClassification(config)


def hf_convnext(dropout: float) -> Any:
    return tf.ConvNextForImageClassification(
        tf.ConvNextConfig(num_stages=2, hidden_sizes=[8, 16], depths=[2, 2], drop_path_rate=2 * dropout, num_labels=3)
    )


def segformer(dropout: float) -> Any:
    return tf.SegformerForSemanticSegmentation(
        tf.SegformerConfig(
            num_encoder_blocks=2,
            depths=[1, 1],
            sr_ratios=[2, 1],
            hidden_sizes=[8, 16],
            patch_sizes=[7, 3],
            strides=[4, 2],
            num_attention_heads=[1, 2],
            mlp_ratios=[2, 2],
            decoder_hidden_size=8,
            num_labels=3,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            drop_path_rate=dropout,
            classifier_dropout_prob=dropout,
        )
    )


def hf_swin(dropout: float) -> Any:
    return tf.SwinForImageClassification(
        tf.SwinConfig(
            image_size=32,
            patch_size=4,
            embed_dim=8,
            depths=[2, 2],
            num_heads=[2, 2],
            window_size=4,
            num_labels=3,
            hidden_dropout_prob=dropout,
            attention_probs_dropout_prob=dropout,
            drop_path_rate=dropout,
        )
    )


def clip(dropout: float) -> Any:
    words = dict(
        vocab_size=99,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
        attention_dropout=dropout,
        bos_token_id=0,
        eos_token_id=98,
    )
    images = dict(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
        image_size=32,
        patch_size=8,
        attention_dropout=dropout,
    )
    return tf.CLIPModel(tf.CLIPConfig(text_config=words, vision_config=images, projection_dim=8))


def captioned(samples: int) -> dict[str, Any]:
    ids = torch.randint(1, 98, (samples, 10))
    ids[torch.arange(samples), torch.randint(4, 10, (samples,))] = 98
    mask = (torch.arange(10) <= (ids == 98).int().argmax(1)[:, None]).long()
    return {
        "input_ids": ids,
        "attention_mask": mask,
        "pixel_values": torch.randn(samples, 3, 32, 32),
        "return_loss": True,
    }


def clip_loss_outside(model: nn.Module, batch: dict[str, Any]) -> Tensor:
    logits = model(**{k: v for k, v in batch.items() if k != "return_loss"}).logits_per_image
    labels = torch.arange(len(logits))
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.T, labels)) / 2


def detr(dropout: float) -> Any:
    backbone = tf.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], out_features=["stage2"])
    return tf.DetrForObjectDetection(
        tf.DetrConfig(
            use_timm_backbone=False,
            use_pretrained_backbone=False,
            backbone=None,
            backbone_config=backbone,
            d_model=16,
            encoder_layers=1,
            decoder_layers=1,
            encoder_attention_heads=2,
            decoder_attention_heads=2,
            encoder_ffn_dim=24,
            decoder_ffn_dim=24,
            num_queries=5,
            num_labels=3,
            dropout=dropout,
        )
    )


def found(samples: int) -> dict[str, Any]:
    labels = [
        {"class_labels": torch.randint(0, 3, (n,)), "boxes": torch.rand(n, 4) * 0.5 + 0.2}
        for n in torch.randint(1, 4, (samples,)).tolist()
    ]
    return {
        "pixel_values": torch.randn(samples, 3, 32, 32),
        "pixel_mask": torch.ones(samples, 32, 32).long(),
        "labels": labels,
    }


seen = partial(Entry, library="torchvision", batch=pictures, loss=classes, rate=1e-3)
timms = partial(Entry, library="timm", batch=pictures, loss=classes, rate=1e-3)
hugging = partial(Entry, library="transformers", batch=labelled, loss=own_loss)

ENTRIES = [
    seen("ResNet-18", build=vision("resnet18"), cheap=True),
    seen("ResNet of bottlenecks, 3 ranks", build=bottlenecks, ranks=3),
    seen("MobileNetV3", build=vision("mobilenet_v3_small", dropout=0.0)),
    seen("EfficientNet-B0", build=efficientnet, dropout=True),
    seen("Swin (torchvision)", build=swin, dropout=True),
    seen("ViT (torchvision)", build=vit, dropout=True, cheap=True),
    seen("ConvNeXt (torchvision)", build=convnext, dropout=True),
    seen("RegNet (torchvision)", build=vision("regnet_y_400mf")),
    seen("ViT (torchvision), autocast", build=vit, loss=mixed, double=False, tolerance=2e-2, dropout=True),
    seen("FCN", build=fcn, batch=maps, loss=map_loss, dropout=True),
    seen("DeepLabV3", build=segmented("deeplabv3_mobilenet_v3_large"), batch=maps, loss=map_loss, dropout=True),
    seen(
        "Faster R-CNN",
        build=detector("fasterrcnn_mobilenet_v3_large_320_fpn", **SIZES, **FEW),
        batch=scenes,
        loss=detection_loss,
    ),
    seen("RetinaNet", build=detector("retinanet_resnet50_fpn", **SIZES), batch=scenes, loss=detection_loss),
    seen("SSDlite", build=ssdlite, batch=scenes, loss=detection_loss),
    seen("Mask R-CNN", build=mask_rcnn, batch=scenes, loss=detection_loss, most=0.73),
    timms(
        "ViT (timm)",
        build=dropped("vit_tiny_patch16_224", img_size=64, patch_size=16, embed_dim=16, depth=2, num_heads=2),
        dropout=True,
        cheap=True,
    ),
    timms("ResNet (timm)", build=timm_resnet, dropout=True),
    timms("EfficientNet (timm)", build=timm_efficientnet, dropout=True, cheap=True),
    timms("ConvNeXt (timm)", build=dropped("convnext_atto", depths=(1, 1, 2, 1), dims=(8, 8, 16, 16)), dropout=True),
    timms("MLP-Mixer (timm)", build=mixer, dropout=True),
    timms(
        "Swin (timm)",
        build=dropped(
            "swin_tiny_patch4_window7_224", img_size=64, window_size=4, embed_dim=8, depths=(2, 2), num_heads=(2, 2)
        ),
        dropout=True,
    ),
    timms("RegNet (timm)", build=dropped("regnety_002"), dropout=True),
    hugging("ViT", build=patches("ViTForImageClassification", "ViTConfig"), dropout=True, cheap=True),
    hugging("DeiT", build=patches("DeiTForImageClassification", "DeiTConfig"), dropout=True),
    hugging("BEiT", build=patches("BeitForImageClassification", "BeitConfig", "drop_path_rate"), dropout=True),
    hugging("DINOv2", build=dinov2, dropout=True),
    hugging("ResNet (transformers)", build=hf_resnet, rate=1e-3),
    hugging("MobileViT", build=mobilevit, dropout=True, rate=1e-3),
    hugging("ConvNeXt", build=hf_convnext, dropout=True),
    hugging("Swin", build=hf_swin, dropout=True),
    hugging("SegFormer", build=segformer, batch=painted, dropout=True),
    hugging("CLIP", build=clip, batch=captioned, dropout=True, cheap=True),
    hugging("CLIP, loss outside", build=clip, batch=captioned, loss=clip_loss_outside, dropout=True),
    hugging("DETR", build=detr, batch=found, dropout=True, double=False, tolerance=1e-4),
]
